// What L-BFGS makes of the sums of lbfgs_products: whether the newest point becomes the base, and the coefficients of the next direction
// (Byrd, Nocedal and Schnabel 1994, as gpu_backend/gradients/quasi_newton.py says):
//
//     u = R^-1 S g,   p = R^-T ((D + c Y Y') u - c Y g),   direction = -(c g + S' p - c Y' u)
//
// The products R of steps and changes and Y Y' of changes are kept in fp64, [sample][2][place][place], and get a row and a column with each
// pair. `numbers` are the value at the base and the length of the step, [sample][2]; counters, products and coefficients are those of
// parts/lbfgs.cuh. Macro PAIRS, at most 32: a lane of the first warp has a pair, the oldest first. Grid: samples.
#define HALF 0
#include "parts/types.cuh"
#include "parts/lbfgs.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 512
#define PARTS (THREADS / 128)  // threads that share the sum of a column
#define WHOLE 0xffffffffu

extern "C" __global__ void __launch_bounds__(THREADS) lbfgs_solve(
    const float* __restrict__ products, const float* __restrict__ values, double* __restrict__ matrices, float* __restrict__ numbers,
    int* __restrict__ counters, float* __restrict__ coefficients, int blocks, int variables, int most_halvings, float decrease,
    float first_length) {
    __shared__ double parts[PARTS][128], sums[COLUMNS], kept[2][PAIRS][PAIRS], shared_u[PAIRS];
    const int sample = blockIdx.x, column = threadIdx.x % 128, part = threadIdx.x / 128;
    products += (size_t)sample * blocks * COLUMNS;
    matrices += (size_t)sample * 2 * PAIRS * PAIRS;
    numbers += 2 * sample, counters += COUNTERS * sample, coefficients += COEFFICIENTS * sample;
    wait_for_previous_kernel();
    for (int i = threadIdx.x; i < 2 * PAIRS * PAIRS; i += THREADS) (&kept[0][0][0])[i] = matrices[i];
    double sum = 0.0;
    if (column < COLUMNS) {
#pragma unroll 8
        for (int block = part; block < blocks; block += PARTS) sum += products[(size_t)block * COLUMNS + column];
    }
    parts[part][column] = sum;
    int next = counters[NEXT], count = counters[COUNT], halvings = counters[HALVINGS];
    const float value = values[sample], before = numbers[0], length = numbers[1];
    __syncthreads();
    if (threadIdx.x < COLUMNS) {
        sum = 0.0;
#pragma unroll
        for (int i = 0; i < PARTS; ++i) sum += parts[i][threadIdx.x];
        sums[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;

    const float slope = (float)sums[NEW_COLUMN(SLOPE)];
    const bool is_enough = value <= before + decrease * length * slope && sums[NEW_COLUMN(NOT_FINITE)] == 0.0;
    const bool is_halved = !is_enough && halvings < most_halvings;
    const double curvature = sums[NEW_COLUMN(NEW_CURVATURE)], square = sums[NEW_COLUMN(NEW_CHANGE_CHANGE)];
    const bool is_kept = is_enough && curvature > 1e-10 * square;
    const int newest = next, lane = threadIdx.x;
    if (is_kept) {
        next = next + 1 < PAIRS ? next + 1 : 0, count = min(count + 1, PAIRS);
        if (lane < PAIRS) {
            const double with_step = lane == newest ? curvature : sums[STEP_CHANGE * PAIRS + lane];
            const double with_change = lane == newest ? square : sums[CHANGE_CHANGE * PAIRS + lane];
            kept[0][lane][newest] = matrices[lane * PAIRS + newest] = with_step;
            kept[1][lane][newest] = matrices[(PAIRS + lane) * PAIRS + newest] = with_change;
            kept[1][newest][lane] = matrices[(PAIRS + newest) * PAIRS + lane] = with_change;
        }
    } else if (!is_enough && !is_halved) {
        count = 0;
    }
    __syncwarp();
    if (lane == 0) {
        counters[NEXT] = next, counters[COUNT] = count, counters[HALVINGS] = is_halved ? halvings + 1 : 0;
        counters[DECISION] = is_enough ? ACCEPTED : is_halved ? HALVED : GIVEN_UP, counters[PLACE] = is_kept ? newest : -1;
        // The minimum of the parabola through both values and the slope, kept within a tenth and a half.
        const float curve = value - before - length * slope;
        const float best = curve > 0.0f ? -0.5f * slope * length * length / curve : 0.0f;
        if (is_enough) numbers[0] = value;
        numbers[1] = is_halved ? fminf(fmaxf(best, 0.1f * length), 0.5f * length) : 1.0f;
    }
    if (is_halved) return;

    // Pairs that are missing come first.
    const int place = (next + lane) % PAIRS, missing = PAIRS - count;
    const bool is_there = lane < PAIRS && lane >= missing;
    double scale = 0.0, u = 0.0, p = 0.0;
    if (count > 0) {
        const int last = (next + PAIRS - 1) % PAIRS;
        scale = kept[0][last][last] / kept[1][last][last];
        const bool is_new = is_kept && place == newest;
        double along_step = 0.0, along_change = 0.0, inverse = 0.0, diagonal = 0.0;
        if (is_there) {
            along_step = is_new ? sums[NEW_COLUMN(NEW_STEP_GRADIENT)] : sums[STEP_GRADIENT * PAIRS + place];
            along_change = is_new ? sums[NEW_COLUMN(NEW_CHANGE_GRADIENT)] : sums[CHANGE_GRADIENT * PAIRS + place];
            diagonal = kept[0][place][place], inverse = 1.0 / diagonal;
        }
        for (int other = PAIRS - 1; other >= missing; --other) {
            const double solved = __shfl_sync(WHOLE, along_step * inverse, other);
            if (lane == other) u = solved;
            if (is_there && lane < other) along_step -= kept[0][place][(next + other) % PAIRS] * solved;
        }
        if (is_there) shared_u[place] = u;
        __syncwarp();
        double right = 0.0;
        if (is_there) {
            double through = 0.0;
            for (int other = missing; other < PAIRS; ++other) {
                const int at = (next + other) % PAIRS;
                through = fma(kept[1][at][place], shared_u[at], through);
            }
            right = diagonal * u + scale * (through - along_change);
        }
        for (int other = missing; other < PAIRS; ++other) {
            const double solved = __shfl_sync(WHOLE, right * inverse, other);
            if (lane == other) p = solved;
            if (is_there && lane > other) right -= kept[0][(next + other) % PAIRS][place] * solved;
        }
    }
    if (lane < PAIRS) {
        coefficients[1 + place] = (float)p;
        coefficients[1 + PAIRS + place] = (float)(-scale * u);
    }
    if (lane == 0) {
        const float size = sqrtf((float)(sums[NEW_COLUMN(is_enough ? NEW_SQUARE : OLD_SQUARE)] / variables));
        coefficients[0] = count > 0 ? (float)scale : first_length / fmaxf(size, 1e-30f);  // without a pair, a short step
    }
}
