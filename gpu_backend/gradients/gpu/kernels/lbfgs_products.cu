// What a step of L-BFGS (gpu_backend/gradients/quasi_newton.py) has to know of the gradient g at the newest point: with s = point - base and
// y = g - gradient, the columns of `products` that parts/lbfgs.cuh lists, summed over the block's variables. Of a pair that is missing they are
// not used. Vectors are [sample][variable], pairs [sample][place][variable], products [sample][block][column].
// Macro PAIRS. Grid: blocks of LBFGS_THREADS variables, samples, LBFGS_PARTS of the pairs.
#define HALF 0
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"
#include "parts/lbfgs.cuh"
#include "parts/previous_kernel.cuh"

#define WARPS (LBFGS_THREADS / 32)
#define TURNS (LBFGS_THREADS / 32)  // numbers of a row that a lane takes
#define ROWS ((2 * PAIRS + LBFGS_PARTS * WARPS - 1) / (LBFGS_PARTS * WARPS))  // steps or changes of a warp
#define NUMBERS 8
#define LARGEST_FLOAT 3.402823466e38f

extern "C" __global__ void __launch_bounds__(LBFGS_THREADS) lbfgs_products(
    const float* __restrict__ point, const float* __restrict__ base, const float* __restrict__ fresh, const float* __restrict__ gradient,
    const float* __restrict__ direction, const float* __restrict__ steps, const float* __restrict__ changes, float* __restrict__ products,
    int variables) {
    __shared__ float news[2][LBFGS_THREADS];  // y and g
    __shared__ float totals[NUMBERS][WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sample = blockIdx.y;
    const int first = blockIdx.x * LBFGS_THREADS, place = first + threadIdx.x, own = min(LBFGS_THREADS, variables - first);
    products += ((size_t)sample * gridDim.x + blockIdx.x) * COLUMNS;
    wait_for_previous_kernel();
    float numbers[NUMBERS] = {};
    news[0][threadIdx.x] = news[1][threadIdx.x] = 0.0f;
    if (place < variables) {
        const size_t at = (size_t)sample * variables + place;
        const float g = fresh[at], before = gradient[at], s = point[at] - base[at], y = g - before;
        news[0][threadIdx.x] = y, news[1][threadIdx.x] = g;
        numbers[NEW_CURVATURE] = s * y, numbers[NEW_STEP_GRADIENT] = s * g, numbers[NEW_CHANGE_CHANGE] = y * y;
        numbers[NEW_CHANGE_GRADIENT] = y * g, numbers[NEW_SQUARE] = g * g, numbers[OLD_SQUARE] = before * before;
        numbers[SLOPE] = before * direction[at], numbers[NOT_FINITE] = fabsf(g) <= LARGEST_FLOAT ? 0.0f : 1.0f;
    }
    // All loads are under way together.
    float v[ROWS][TURNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = min((i * LBFGS_PARTS + (int)blockIdx.z) * WARPS + warp, 2 * PAIRS - 1);
        const float* from = (row < PAIRS ? steps : changes) + ((size_t)sample * PAIRS + row % PAIRS) * variables + first;
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) v[i][turn] = from[min(lane + 32 * turn, own - 1)];  // beyond it y and g are 0
    }
    if (blockIdx.z == 0) {
#pragma unroll
        for (int i = 0; i < NUMBERS; ++i) {
            const float total = warp_total(numbers[i]);
            if (lane == 0) totals[i][warp] = total;
        }
    }
    __syncthreads();
    if (blockIdx.z == 0 && threadIdx.x < NUMBERS) {
        float total = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) total += totals[threadIdx.x][i];
        products[NEW_COLUMN(threadIdx.x)] = total;
    }
    float y[TURNS], g[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) y[turn] = news[0][lane + 32 * turn], g[turn] = news[1][lane + 32 * turn];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = (i * LBFGS_PARTS + (int)blockIdx.z) * WARPS + warp;
        float with_y = 0.0f, with_g = 0.0f;
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) with_y = fmaf(v[i][turn], y[turn], with_y), with_g = fmaf(v[i][turn], g[turn], with_g);
        with_y = warp_total(with_y), with_g = warp_total(with_g);
        if (lane == 0 && row < 2 * PAIRS) {
            const bool is_change = row >= PAIRS;
            products[(is_change ? CHANGE_CHANGE : STEP_CHANGE) * PAIRS + row % PAIRS] = with_y;
            products[(is_change ? CHANGE_GRADIENT : STEP_GRADIENT) * PAIRS + row % PAIRS] = with_g;
        }
    }
}
