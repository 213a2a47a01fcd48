// Bent channels (gpu_backend/ops/bend_channels.py):
//     v = x(M p), bilinear, mirrored at the edges;  y_raw = gain * (|v| >= threshold ? v : 0);  y = next_style * y_raw
// x, y, y_raw: (batch, side, side, channels), channels padded; y or y_raw may be null, next_style too. `table` has two
// groups of four numbers for each of the `used` channels: M row by row, threshold, gain. Padding becomes zeros.
// Macros: HALF, WIDE: neighbouring channels of a thread, 1 or 4. Grid: groups of WIDE channels of the pixels of a sample,
// 256 per block; samples.
#include "parts/types.cuh"

// Maps a position along an axis, in widths from the centre, to a pixel coordinate, mirrored at the ends.
__device__ __forceinline__ float placed(float position, int side) {
    const float span = 2.0f * side, at = (position + 0.5f) * side;
    const float wrapped = at - floorf(at / span) * span;
    const float inside = (wrapped > side ? span - wrapped : wrapped) - 0.5f;
    return fminf(fmaxf(inside, 0.0f), side - 1.0f);
}

__device__ __forceinline__ float loaded(const T* from) {
    float v[1];
    load_many<1>(from, v);
    return v[0];
}

extern "C" __global__ void __launch_bounds__(256) bend_channels(
    const T* __restrict__ x, const float4* __restrict__ table, const float* __restrict__ next_style, T* __restrict__ y,
    T* __restrict__ y_raw, int side, int channels, int used, int style_stride) {
    const int groups = channels / WIDE, item = blockIdx.x * 256 + threadIdx.x;
    if (item >= side * side * groups) return;
    const int pixel = item / groups, first = item % groups * WIDE;
    const size_t sample = blockIdx.y;
    const T* const from = x + sample * side * side * channels + first;
    const float u = (pixel % side + 0.5f) / side - 0.5f, w = (pixel / side + 0.5f) / side - 0.5f;
    float v[WIDE];
    load_many<WIDE>(from + (size_t)pixel * channels, v);
#pragma unroll
    for (int i = 0; i < WIDE; ++i) {
        if (first + i >= used) {
            v[i] = 0.0f;
            continue;
        }
        const float4 m = table[2 * (first + i)], n = table[2 * (first + i) + 1];
        if (m.x != 1.0f || m.y != 0.0f || m.z != 0.0f || m.w != 0.0f || n.x != 1.0f || n.y != 0.0f) {
            const float column = placed(m.x * u + m.y * w + m.z, side), row = placed(m.w * u + n.x * w + n.y, side);
            const int left = (int)column, top = (int)row;
            const int right = min(left + 1, side - 1), low = min(top + 1, side - 1);
            const float to_right = column - left, down = row - top;
            const float upper = loaded(from + (size_t)(top * side + left) * channels + i) * (1.0f - to_right) +
                                loaded(from + (size_t)(top * side + right) * channels + i) * to_right;
            const float lower = loaded(from + (size_t)(low * side + left) * channels + i) * (1.0f - to_right) +
                                loaded(from + (size_t)(low * side + right) * channels + i) * to_right;
            v[i] = upper * (1.0f - down) + lower * down;
        }
        v[i] = fabsf(v[i]) < n.z ? 0.0f : v[i] * n.w;  // NaN and infinity stay
    }
    const size_t to = (sample * side * side + pixel) * channels + first;
    if (y_raw != nullptr) store_many<WIDE>(y_raw + to, v);
    if (y == nullptr) return;
    if (next_style != nullptr) {
        float style[WIDE];
        load_many<WIDE>(next_style + sample * style_stride + first, style);
#pragma unroll
        for (int i = 0; i < WIDE; ++i) v[i] *= style[i];
    }
    store_many<WIDE>(y + to, v);
}
