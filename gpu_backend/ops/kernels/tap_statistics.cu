// Figures of a layer (gpu_backend/ops/tap_display.py), as far as blocks come that know nothing of each other:
//     figures[b][stretch][channel]   of each channel over the pixels of a stretch
//     shares[b][stretch][slab]       of the channels of a slab together
// each {mean, sum of squared distances from it, least, largest}; how many numbers that is, tap_display.cu can tell.
// The order of all sums is fixed. Macros: HALF, WIDE (channels of a thread, 1|8). `lanes` neighbouring threads share a
// pixel, a power of two up to 32. `x`: (batch, area, stride), of which `channels` are the layer's.
// Grid: stretches of `stretch` pixels; slabs of lanes * WIDE channels; samples.
// part: types
// part: figures

#define THREADS 256

__shared__ Figures held[THREADS / 2 * WIDE];

// Joins what the first `total` threads hold, those that are a multiple of `unit` apart, into the first `unit` of them.
template <int N>
__device__ __forceinline__ void join_threads(Figures (&mine)[N], int total, int unit) {
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
            for (int i = 0; i < N; ++i) mine[i] = joined(mine[i], held[i * (THREADS / 2) + tid]);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256, 3) tap_statistics(
    const T* __restrict__ x, float4* __restrict__ figures, float4* __restrict__ shares, int area, int stride, int channels,
    int stretch, int lanes) {
    const int lane = threadIdx.x & (lanes - 1), channel = (blockIdx.y * lanes + lane) * WIDE;
    const int first = blockIdx.x * stretch, end = min(first + stretch, area);
    const size_t sample = blockIdx.z;
    const bool is_there = channel < stride;
    Figures mine[WIDE];
#pragma unroll
    for (int i = 0; i < WIDE; ++i) mine[i] = no_figures();
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
                const float apart = v[i] - mine[i].mean;
                mine[i].count = count;
                mine[i].mean += apart * share;
                mine[i].squares += apart * (v[i] - mine[i].mean);
                mine[i].least = lesser(mine[i].least, v[i]);
                mine[i].largest = greater(mine[i].largest, v[i]);
            }
        }
    }
    join_threads(mine, THREADS, lanes);
    const size_t place = sample * gridDim.x + blockIdx.x;
    Figures together[1] = {no_figures()};
    if (threadIdx.x < lanes && is_there) {
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            figures[place * stride + channel + i] = make_float4(mine[i].mean, mine[i].squares, mine[i].least, mine[i].largest);
            if (channel + i < channels) together[0] = joined(together[0], mine[i]);
        }
    }
    join_threads(together, lanes, 1);
    if (threadIdx.x == 0) {
        shares[place * gridDim.y + blockIdx.y] =
            make_float4(together[0].mean, together[0].squares, together[0].least, together[0].largest);
    }
}
