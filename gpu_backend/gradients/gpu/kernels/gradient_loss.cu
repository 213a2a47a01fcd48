// The part of a drag's loss that is everywhere, and its gradient: weight(p) |features - first|, where
// weight(p) = faint + keep * mask[p], both already divided by the number of features and their scale.
// A block leaves its sum in `parts`. Grid: blocks of 1,024 groups of four channels.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define TURNS 4

__device__ __forceinline__ float sign_of(float v) { return v > 0.0f ? 1.0f : v < 0.0f ? -1.0f : 0.0f; }

extern "C" __global__ void __launch_bounds__(THREADS) gradient_loss(
    const half_bits* __restrict__ features, const half_bits* __restrict__ first, const float* __restrict__ mask,
    float* __restrict__ gradient, float* __restrict__ parts, int pixels, int channels, float faint, float keep) {
    __shared__ float warps[THREADS / 32];
    const int quads = channels >> 2;
    wait_for_previous_kernel();
    float sum = 0.0f;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int index = (blockIdx.x * TURNS + turn) * THREADS + threadIdx.x;
        if (index < pixels * quads) {
            const float weight = faint + (mask ? keep * mask[index / quads] : 0.0f);
            float now[4], then[4];
            load_many(features + (size_t)index * 4, now);
            load_many(first + (size_t)index * 4, then);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float difference = now[i] - then[i];
                sum = fmaf(weight, fabsf(difference), sum);
                now[i] = weight * sign_of(difference);
            }
            store_many(gradient + (size_t)index * 4, now);
        }
    }
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (int i = 0; i < THREADS / 32; ++i) sum += warps[i];
        parts[blockIdx.x] = sum;
    }
}
