// Partial statistics of a layer (gpu_backend/ops/tap_display.py), one block each:
//     channel_partials[b][stretch][channel]   of a channel over the pixels of a stretch
//     slab_partials[b][stretch][slab]         of all channels of a slab together
// each {mean, M2, minimum, maximum}; tap_display.cu computes the counts.
// The order of all sums is fixed. Macros: HALF, WIDE (channels of a thread, 1|8). `lanes` neighbouring threads share a
// pixel, a power of two up to 32. `x`: (batch, area, stride), with `channels` channels and padding.
// Grid: stretches of `stretch` pixels; slabs of lanes * WIDE channels; samples.
#include "parts/types.cuh"
#include "parts/statistics.cuh"

enum : int { THREADS = 256 };

__shared__ Statistics held[THREADS / 2 * WIDE];

// Joins what the first `total` threads hold, those that are a multiple of `unit` delta, into the first `unit` of them.
template <int N>
__device__ __forceinline__ void merge_threads(Statistics (&mine)[N], int total, int unit) {
    const int tid = threadIdx.x;
#pragma unroll 1
    for (int half = total / 2; half >= unit; half /= 2) {
        if (tid >= half && tid < 2 * half) {
#pragma unroll
            for (int i = 0; i < N; ++i) held[i * (THREADS / 2) + tid - half] = mine[i];
        }
        __syncthreads();
        if (tid < half) {
#pragma unroll
            for (int i = 0; i < N; ++i) mine[i] = merged(mine[i], held[i * (THREADS / 2) + tid]);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256, 3) tap_statistics(
    const T* __restrict__ x, float4* __restrict__ channel_partials, float4* __restrict__ slab_partials, int area, int stride, int channels,
    int stretch, int lanes) {
    const int lane = threadIdx.x & (lanes - 1), channel = (blockIdx.y * lanes + lane) * WIDE;
    const int first = blockIdx.x * stretch, end = min(first + stretch, area);
    const size_t sample = blockIdx.z;
    const bool is_there = channel < stride;
    Statistics mine[WIDE];
#pragma unroll
    for (int i = 0; i < WIDE; ++i) mine[i] = no_statistics();
    if (is_there) {
        const int step = THREADS / lanes;
        const T* const from = x + sample * area * stride + channel;
#pragma unroll 4
        for (int pixel = first + (int)threadIdx.x / lanes; pixel < end; pixel += step) {
            float v[WIDE];
            load_many<WIDE>(from + (size_t)pixel * stride, v);
            const float count = mine[0].count + 1.0f, share = __frcp_rn(count);
#pragma unroll
            for (int i = 0; i < WIDE; ++i) {
                const float delta = v[i] - mine[i].mean;
                mine[i].count = count;
                mine[i].mean += delta * share;
                mine[i].m2 += delta * (v[i] - mine[i].mean);
                mine[i].least = lesser(mine[i].least, v[i]);
                mine[i].largest = greater(mine[i].largest, v[i]);
            }
        }
    }
    merge_threads(mine, THREADS, lanes);
    const size_t place = sample * gridDim.x + blockIdx.x;
    Statistics together[1] = {no_statistics()};
    if (threadIdx.x < lanes && is_there) {
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            channel_partials[place * stride + channel + i] = make_float4(mine[i].mean, mine[i].m2, mine[i].least, mine[i].largest);
            if (channel + i < channels) together[0] = merged(together[0], mine[i]);
        }
    }
    merge_threads(together, lanes, 1);
    if (threadIdx.x == 0) {
        slab_partials[place * gridDim.y + blockIdx.y] =
            make_float4(together[0].mean, together[0].m2, together[0].least, together[0].largest);
    }
}
