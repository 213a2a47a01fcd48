// gpu_backend/ops/filtered_lrelu.py in fp32, for any factors and filters, pass by pass through shared memory: upsampling along rows and
// columns, activation, downsampling along rows and columns. It is the kernel of the fp32 mode, the fallback of the fused kernel and
// the reference of its self-check. A block computes TILE x TILE outputs of four channels.
//
// Macros: HALF, FP8_Y (see parts/e4m3.cuh; y's channels are padded with zeros to a multiple of 16 then), ACTIVATION, TILE, RADIAL. up_taps
// includes the gain of an axis; down_taps: (down_count,), with RADIAL (down_count, down_count). low: zeros before the first sample. patch: samples along an axis that a tile reads.
// Shared memory, in quads of channels: max(patch^2, middle^2) + max(patch middle, middle TILE).
// Grid: tiles, quads of channels, pictures.
#include "parts/types.cuh"
#include "parts/e4m3.cuh"
#include "parts/activation.cuh"

enum : int { THREADS = 256 };

__device__ __forceinline__ int floor_divided(int a, int b) {
    return (a >= 0 ? a : a - b + 1) / b;
}

__device__ __forceinline__ void add_times(float4& sum, float factor, const float4& v) {
    sum.x += factor * v.x;
    sum.y += factor * v.y;
    sum.z += factor * v.z;
    sum.w += factor * v.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) plain_filtered_lrelu(
    const T* __restrict__ x, Y* __restrict__ y, const float* __restrict__ next_style, const float* __restrict__ up_taps,
    const float* __restrict__ down_taps, int in_size, int out_size, int channels, int style_stride, int up, int down,
    int up_count, int down_count, int low, int patch, float gain, float clamp) {
    extern __shared__ float4 shared[];
    const int middle = (TILE - 1) * down + down_count;
    float4* const samples = shared;                                            // [patch][patch], then
    float4* const activated = shared;                                          // [middle][middle]
    float4* const rows = shared + max(patch * patch, middle * middle);         // [patch][middle], then
    float4* const narrow = rows;                                               // [middle][TILE]
    const int tiles = (out_size + TILE - 1) / TILE, channel = blockIdx.y * 4;
    const int x0 = static_cast<int>(blockIdx.x) % tiles * TILE, y0 = static_cast<int>(blockIdx.x) / tiles * TILE;
    const size_t sample = blockIdx.z;
    const int left = floor_divided(x0 * down - low + up - 1, up), top = floor_divided(y0 * down - low + up - 1, up);

    for (int i = threadIdx.x; i < patch * patch; i += THREADS) {
        const int row = top + i / patch, column = left + i % patch;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (static_cast<unsigned>(row) < static_cast<unsigned>(in_size) && static_cast<unsigned>(column) < static_cast<unsigned>(in_size))
            load_many<4>(x + ((sample * in_size + row) * in_size + column) * channels + channel, v);
        samples[i] = make_float4(v[0], v[1], v[2], v[3]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < patch * middle; i += THREADS) {
        const int place = x0 * down + i % middle + up_count - 1 - low, last = floor_divided(place, up);
        const float4* from = samples + i / middle * patch + last - left;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int k = place - up * last; k < up_count; k += up) add_times(sum, up_taps[k], *from--);
        rows[i] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < middle * middle; i += THREADS) {
        const int place = y0 * down + i / middle + up_count - 1 - low, last = floor_divided(place, up);
        const float4* from = rows + (last - top) * middle + i % middle;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int k = place - up * last; k < up_count; k += up, from -= middle) add_times(sum, up_taps[k], *from);
        activated[i] = make_float4(
            bounded(activate(sum.x) * gain, clamp), bounded(activate(sum.y) * gain, clamp),
            bounded(activate(sum.z) * gain, clamp), bounded(activate(sum.w) * gain, clamp));
    }
    __syncthreads();
#if !RADIAL
    for (int i = threadIdx.x; i < middle * TILE; i += THREADS) {
        const float4* const from = activated + i / TILE * middle + i % TILE * down + down_count - 1;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int j = 0; j < down_count; ++j) add_times(sum, down_taps[j], from[-j]);
        narrow[i] = sum;
    }
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int row = i / TILE, column = i % TILE;
        if (y0 + row >= out_size || x0 + column >= out_size) continue;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int j = 0; j < down_count; ++j) {
            const int from_row = row * down + down_count - 1 - j;
#if RADIAL
            const float4* const from = activated + from_row * middle + column * down + down_count - 1;
            for (int k = 0; k < down_count; ++k) add_times(sum, down_taps[j * down_count + k], from[-k]);
#else
            add_times(sum, down_taps[j], narrow[from_row * TILE + column]);
#endif
        }
        float v[4] = {sum.x, sum.y, sum.z, sum.w};
        if (next_style != nullptr) {
            float style[4];
            load_many<4>(next_style + sample * style_stride + channel, style);
#pragma unroll
            for (int e = 0; e < 4; ++e) v[e] *= style[e];
        }
        const int stored_channels = FP8_Y ? (channels + 15) / 16 * 16 : channels;
        Y* const to = y + ((sample * out_size + y0 + row) * out_size + x0 + column) * stored_channels + channel;
        if constexpr (FP8_Y) {
#pragma unroll
            for (int e = 0; e < 4; ++e) v[e] *= FP8_Y_UNIT;
            const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (channel + 8 >= channels && channels < stored_channels) store_many<4>(to + 8, zeros);
        }
        store_many<4>(to, v);
    }
}
