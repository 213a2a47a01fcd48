// Activations of second latents under masks (gpu_backend/ops/blend_samples.py):
//     y_raw[i] = x[i];  y_raw[i] += m_k (second[k] - y_raw[i]) for each mask k    i < pictures
//     y_raw[j] = x[j]                                                             pictures <= j
//     y = next_style * y_raw
// x, y, y_raw, second: (samples, side, side, channels), channels padded; second may be what follows the pictures in x,
// and is null without pictures. y or y_raw may be null, next_style too. A null mask: no such blend. Macros: HALF, WIDE:
// neighbouring channels of a thread, 1 or 8. Grid: groups of WIDE channels of the pixels of a sample, 256 per block;
// samples of y.
#include "parts/types.cuh"
#include "parts/masks.cuh"

extern "C" __global__ void __launch_bounds__(256) blend_samples(
    const T* __restrict__ x, const float* __restrict__ mask_0, const float* __restrict__ mask_1,
    const float* __restrict__ mask_2, const T* __restrict__ second, const float* __restrict__ next_style,
    T* __restrict__ y, T* __restrict__ y_raw, int pictures, int mask_side, int side, int channels, int style_stride) {
    const int groups = channels / WIDE, item = blockIdx.x * 256 + threadIdx.x;
    if (item >= side * side * groups) return;
    const int pixel = item / groups, first = item % groups * WIDE;
    const size_t sample = blockIdx.y, stride = (size_t)side * side * channels, place = (size_t)pixel * channels + first;
    float v[WIDE];
    load_many<WIDE>(x + sample * stride + place, v);
    if (sample < pictures) {
        const float* const masks[MASKS] = {mask_0, mask_1, mask_2};
#pragma unroll
        for (int k = 0; k < MASKS; ++k) {
            if (masks[k] == nullptr) continue;
            const float share = mask_at(masks[k], mask_side, (float)mask_side / side, pixel / side, pixel % side);
            if (share == 0.0f) continue;
            float other[WIDE];
            load_many<WIDE>(second + k * stride + place, other);
#pragma unroll
            for (int i = 0; i < WIDE; ++i) v[i] = blended(v[i], other[i], share);
        }
    }
    const size_t to = sample * stride + place;
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
