// Distance of a feature map from a wanted one whose channels have unit length at each place, and what its gradient is made of:
//
//     r = 1 / sqrt(sum_c x_c^2 + least), s alike of `wanted`,   parts = weight * sum over places of |x r - wanted s|^2
//     d(parts)/dx = along x + across wanted,   numbers = along and across of each place,   most = level * largest length of it
//
// x and wanted are [sample][places][channels] fp16, numbers [sample][places][2]. Parts and most are [sample][blocks], of which this map's begin
// at `first`. Eight threads a place. Grid: groups of 32 places, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

enum : int { PLACES = 32, LANES = 8, THREADS = PLACES * LANES, WARPS = THREADS / 32 };

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_distance(
    const half_bits* __restrict__ x, const half_bits* __restrict__ wanted, float* __restrict__ numbers, float* __restrict__ parts,
    float* __restrict__ most, int channels, int places, int first, int blocks, float least, float weight, float level) {
    __shared__ float totals[WARPS], lengths[WARPS];
    const int place = blockIdx.x * PLACES + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const size_t at = (size_t)blockIdx.y * places + place;
    const bool is_mine = place < places;
    wait_for_previous_kernel();
    float squares = 0.0f, products = 0.0f, others = 0.0f;
    if (is_mine)
        for (int channel = lane * 8; channel < channels; channel += LANES * 8) {
            float v[8], w[8];
            load_many(x + at * channels + channel, v);
            load_many(wanted + at * channels + channel, w);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                squares = fmaf(v[i], v[i], squares), products = fmaf(v[i], w[i], products), others = fmaf(w[i], w[i], others);
        }
#pragma unroll
    for (int other = LANES / 2; other > 0; other >>= 1) {
        squares += __shfl_xor_sync(0xffffffffu, squares, other);
        products += __shfl_xor_sync(0xffffffffu, products, other);
        others += __shfl_xor_sync(0xffffffffu, others, other);
    }
    const float r = rsqrtf(squares + least), s = rsqrtf(others + least), cosine = products * r * s;
    const float along = 2.0f * r * r * (1.0f - squares * r * r + cosine), across = -2.0f * r * s;
    // Both vanish outside, where all sums are 0.
    float total = squares * r * r - 2.0f * cosine + others * s * s;
    float length = along * along * squares + 2.0f * along * across * products + across * across * others;
    if (is_mine && lane == 0) *reinterpret_cast<float2*>(numbers + 2 * at) = make_float2(weight * along, weight * across);
#pragma unroll
    for (int other = LANES; other < 32; other <<= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, other);
        length = fmaxf(length, __shfl_xor_sync(0xffffffffu, length, other));
    }
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = total, lengths[threadIdx.x / 32] = length;
    __syncthreads();
    if (threadIdx.x) return;
#pragma unroll
    for (int i = 1; i < WARPS; ++i) total += totals[i], length = fmaxf(length, lengths[i]);
    const size_t own = (size_t)blockIdx.y * blocks + first + blockIdx.x;
    parts[own] = weight * total;
    most[own] = weight * level * sqrtf(fmaxf(length, 0.0f));
}
