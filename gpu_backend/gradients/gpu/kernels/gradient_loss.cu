// The part of a drag's loss that is everywhere, and its gradient: weight(p) |features - first|, where
// weight(p) = faint + keep * mask[p], both already divided by the number of features and their scale.
// The gradient is fp16, divided by `unit`. A block leaves its sum in `parts`. Grid: blocks of 512 groups of eight channels.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_constants.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define TURNS 2
#define CHANNELS 8  // of a thread

__device__ __forceinline__ float sign_of(float v) { return v > 0.0f ? 1.0f : v < 0.0f ? -1.0f : 0.0f; }

extern "C" __global__ void __launch_bounds__(THREADS) gradient_loss(
    const half_bits* __restrict__ features, const half_bits* __restrict__ first, const float* __restrict__ mask,
    half_bits* __restrict__ gradient, float* __restrict__ parts, int pixels, int channels, float faint, float keep, float unit) {
    __shared__ float warps[THREADS / 32];
    const int groups = channels / CHANNELS, most = pixels * groups - 1;
    const int begin = blockIdx.x * TURNS * THREADS + threadIdx.x;
    uint4 before[TURNS];
    float weights[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int index = min(begin + turn * THREADS, most);
        before[turn] = load_constant(first + (size_t)index * CHANNELS);
        weights[turn] = begin + turn * THREADS > most ? 0.0f : faint + (mask ? keep * mask[index / groups] : 0.0f);
    }
    const float inverse = 1.0f / unit;
    wait_for_previous_kernel();
    float now[TURNS][CHANNELS], sum = 0.0f;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) load_many(features + (size_t)min(begin + turn * THREADS, most) * CHANNELS, now[turn]);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        float then[CHANNELS];
        from_half8(before[turn], then);
#pragma unroll
        for (int i = 0; i < CHANNELS; ++i) {
            const float difference = now[turn][i] - then[i];
            sum = fmaf(weights[turn], fabsf(difference), sum);
            now[turn][i] = weights[turn] * inverse * sign_of(difference);
        }
        if (begin + turn * THREADS <= most) store_many(gradient + (size_t)(begin + turn * THREADS) * CHANNELS, now[turn]);
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
