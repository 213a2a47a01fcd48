// Distances of feature maps from wanted ones whose channels have unit length at each place, and what their gradients are made of:
//
//     r = 1 / sqrt(sum_c x_c^2 + least), s alike of `wanted`,   parts = weight * sum over places of |x r - wanted s|^2
//     d(parts)/dx = along x + across wanted,   numbers = along and across of each place,   most = level * largest length of it
//
// One launch does `maps` maps, each of half the side of the one before: places, weight and level are the first one's, and weight is four times,
// level half as large for each that follows. x and wanted are [sample][places][channels] fp16, numbers [sample][places][2]; arguments of maps that
// are not there are null. Parts and most are [sample][blocks], of which these maps' begin at `first`.
//
// As many threads do a place as read its channels at once, 8 to 32, and four places together. Grid: groups of 1024 / threads places, of one map
// after another; samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_constants.cuh"
#include "parts/previous_kernel.cuh"

enum : int { THREADS = 256, WARPS = THREADS / 32, TURNS = 4, LEAST_LANES = 8 };

#define MAP_PARAMETERS \
    const half_bits* __restrict__ x0, const half_bits* __restrict__ x1, \
    const half_bits* __restrict__ x2, const half_bits* __restrict__ x3, \
    const half_bits* __restrict__ x4, const half_bits* __restrict__ x5, \
    const half_bits* __restrict__ x6, const half_bits* __restrict__ x7, \
    const half_bits* __restrict__ wanted0, const half_bits* __restrict__ wanted1, \
    const half_bits* __restrict__ wanted2, const half_bits* __restrict__ wanted3, \
    const half_bits* __restrict__ wanted4, const half_bits* __restrict__ wanted5, \
    const half_bits* __restrict__ wanted6, const half_bits* __restrict__ wanted7, \
    float* __restrict__ numbers0, float* __restrict__ numbers1, float* __restrict__ numbers2, \
    float* __restrict__ numbers3, float* __restrict__ numbers4, float* __restrict__ numbers5, \
    float* __restrict__ numbers6, float* __restrict__ numbers7, \
    int channels0, int channels1, int channels2, int channels3, int channels4, int channels5, int channels6, int channels7
#define OF_MAP(name) \
    (map == 0 ? name##0 : map == 1 ? name##1 : map == 2 ? name##2 : map == 3 ? name##3 : map == 4 ? name##4 : map == 5 ? name##5 : map == 6 ? name##6 : name##7)

extern "C" __global__ void __launch_bounds__(THREADS, LEVEL == 900 ? 3 : 2) discriminator_distance(
    MAP_PARAMETERS, float* __restrict__ parts, float* __restrict__ most, int maps, int places, int first, int blocks, float least,
    float weight, float level) {
    __shared__ float totals[WARPS], lengths[WARPS];
    int map = 0, block = blockIdx.x, channels, lanes;
    for (;; ++map, places /= 4, weight *= 4.0f, level *= 0.5f) {
        channels = OF_MAP(channels), lanes = channels > 128 ? 32 : channels > 64 ? 16 : LEAST_LANES;
        const int own = (places * lanes + TURNS * THREADS - 1) / (TURNS * THREADS);
        if (block < own || map == maps - 1) break;
        block -= own;
    }
    const int lane = threadIdx.x % lanes, groups = THREADS / lanes, place = block * TURNS * groups + threadIdx.x / lanes;
    const half_bits *x = OF_MAP(x), *wanted = OF_MAP(wanted);
    float squares[TURNS] = {}, products[TURNS] = {}, others[TURNS] = {};
    size_t at[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) at[turn] = (size_t)blockIdx.y * places + min(place + turn * groups, places - 1);
    wait_for_previous_kernel();
#pragma unroll 2
    for (int channel = lane * 8; channel < channels; channel += lanes * 8) {
        uint4 words[TURNS][2];
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            words[turn][0] = *reinterpret_cast<const uint4*>(x + at[turn] * channels + channel);
            words[turn][1] = *reinterpret_cast<const uint4*>(wanted + at[turn] * channels + channel);
        }
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            float v[8], w[8];
            from_half8(words[turn][0], v), from_half8(words[turn][1], w);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                squares[turn] = fmaf(v[i], v[i], squares[turn]), products[turn] = fmaf(v[i], w[i], products[turn]);
                others[turn] = fmaf(w[i], w[i], others[turn]);
            }
        }
    }
    for (int other = lanes / 2; other > 0; other >>= 1)
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            squares[turn] += __shfl_xor_sync(0xffffffffu, squares[turn], other);
            products[turn] += __shfl_xor_sync(0xffffffffu, products[turn], other);
            others[turn] += __shfl_xor_sync(0xffffffffu, others[turn], other);
        }
    float total = 0.0f, length = 0.0f;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        if (place + turn * groups >= places) continue;
        const float r = rsqrtf(squares[turn] + least), s = rsqrtf(others[turn] + least), cosine = products[turn] * r * s;
        const float along = 2.0f * r * r * (1.0f - squares[turn] * r * r + cosine), across = -2.0f * r * s;
        total += squares[turn] * r * r - 2.0f * cosine + others[turn] * s * s;
        length = fmaxf(length, along * along * squares[turn] + 2.0f * along * across * products[turn] + across * across * others[turn]);
        if (lane == 0) *reinterpret_cast<float2*>(OF_MAP(numbers) + 2 * at[turn]) = make_float2(weight * along, weight * across);
    }
    for (int other = lanes; other < 32; other <<= 1) {
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
