// The next direction of L-BFGS from the coefficients of lbfgs_solve, before it is limited in length, and the sum of its squares over the block's
// variables, [sample][block]. A point that was accepted becomes the base first, and its pair takes its place in the ring.
// Macro PAIRS. Grid: blocks of LBFGS_THREADS variables, samples.
#define HALF 0
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"
#include "parts/lbfgs.cuh"
#include "parts/previous_kernel.cuh"

extern "C" __global__ void __launch_bounds__(LBFGS_THREADS) lbfgs_direction(
    const float* __restrict__ point, const float* __restrict__ fresh, const int* __restrict__ counters, const float* __restrict__ coefficients,
    float* __restrict__ base, float* __restrict__ gradient, float* __restrict__ direction, float* __restrict__ steps,
    float* __restrict__ changes, float* __restrict__ squares, int variables) {
    __shared__ float factors[COEFFICIENTS], totals[LBFGS_THREADS / 32];
    const int sample = blockIdx.y, place = blockIdx.x * LBFGS_THREADS + threadIdx.x;
    const bool is_mine = place < variables;
    const size_t at = (size_t)sample * variables + place, pairs = (size_t)sample * PAIRS * variables + place;
    wait_for_previous_kernel();
    // All loads are under way together: none of them waits for the decision.
    float s[PAIRS], y[PAIRS], x = 0.0f, begin = 0.0f, g = 0.0f, before = 0.0f;
    if (is_mine) {
#pragma unroll
        for (int pair = 0; pair < PAIRS; ++pair) {
            s[pair] = steps[pairs + (size_t)pair * variables];
            y[pair] = changes[pairs + (size_t)pair * variables];
        }
        x = point[at], begin = base[at], g = fresh[at], before = gradient[at];
    }
    const int decision = counters[COUNTERS * sample + DECISION], newest = counters[COUNTERS * sample + PLACE];
    if (threadIdx.x < COEFFICIENTS) factors[threadIdx.x] = coefficients[COEFFICIENTS * sample + threadIdx.x];
    __syncthreads();
    if (decision == HALVED) return;
    float found = 0.0f;
    if (is_mine) {
        found = factors[0] * (decision == ACCEPTED ? g : before);
#pragma unroll
        for (int pair = 0; pair < PAIRS; ++pair) {
            found = fmaf(factors[1 + pair], pair == newest ? x - begin : s[pair], found);
            found = fmaf(factors[1 + PAIRS + pair], pair == newest ? g - before : y[pair], found);
        }
        direction[at] = -found;
        if (decision == ACCEPTED) {
            if (newest >= 0) {
                steps[pairs + (size_t)newest * variables] = x - begin;
                changes[pairs + (size_t)newest * variables] = g - before;
            }
            base[at] = x, gradient[at] = g;
        }
    }
    const float total = warp_total(found * found);
    if ((threadIdx.x & 31) == 0) totals[threadIdx.x >> 5] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < LBFGS_THREADS / 32; ++i) sum += totals[i];
        squares[(size_t)sample * gridDim.x + blockIdx.x] = sum;
    }
}
