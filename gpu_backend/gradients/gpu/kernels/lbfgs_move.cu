// The next point of L-BFGS: point = base + length * direction, where a direction that is new is no longer than `longest`, by root mean square.
// `squares` are those of lbfgs_direction. Grid: blocks of LBFGS_THREADS variables, samples; macro PAIRS is that of parts/lbfgs.cuh.
#define HALF 0
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"
#include "parts/lbfgs.cuh"
#include "parts/previous_kernel.cuh"

extern "C" __global__ void __launch_bounds__(LBFGS_THREADS) lbfgs_move(
    const float* __restrict__ base, const float* __restrict__ squares, const int* __restrict__ counters, const float* __restrict__ numbers,
    float* __restrict__ direction, float* __restrict__ point, int variables, float longest) {
    const int sample = blockIdx.y, place = blockIdx.x * LBFGS_THREADS + threadIdx.x;
    const size_t at = (size_t)sample * variables + place;
    wait_for_previous_kernel();
    float d = 0.0f, begin = 0.0f;
    if (place < variables) d = direction[at], begin = base[at];
    if (counters[COUNTERS * sample + DECISION] != HALVED) {
        float sum = 0.0f;
        for (int block = threadIdx.x & 31; block < gridDim.x; block += 32) sum += squares[(size_t)sample * gridDim.x + block];
        const float size = sqrtf(warp_total(sum) / (float)variables);
        d *= longest / fmaxf(size, longest);
        if (place < variables) direction[at] = d;
    }
    if (place < variables) point[at] = fmaf(numbers[2 * sample + 1], d, begin);
}
