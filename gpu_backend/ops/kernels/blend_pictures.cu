// Pictures of second latents under masks (gpu_backend/ops/blend_samples.py) and, of the last one, the bytes of
// gpu_backend/ops/to_display.py:
//     image[i] = x[i];  image[i] += m_k (second[k] - image[i]) for each mask k    i < pictures
//     image[j] = x[j]                                                             pictures <= j
// x, image, second: (samples, side, side, IMG_CHANNELS); second may be what follows the pictures in x. A null pointer:
// no such mask; image or pixels not wanted. flags[b] gets bit 0 if a number is not finite. Macros: IMG_CHANNELS,
// MIDDLE_TWICE (of `bytes`). Grid: pixels of a sample, 256 a block; samples of the image.
#include "parts/masks.cuh"
#include "parts/bytes.cuh"

extern "C" __global__ void __launch_bounds__(256) blend_pictures(
    const float* __restrict__ x, const float* __restrict__ mask_0, const float* __restrict__ mask_1,
    const float* __restrict__ mask_2, const float* __restrict__ second, float* __restrict__ image,
    unsigned* __restrict__ pixels, unsigned* __restrict__ flags, int pictures, int mask_side, int side) {
    const int pixel = blockIdx.x * 256 + threadIdx.x, area = side * side;
    if (pixel >= area) return;
    const int sample = blockIdx.y;
    const size_t place = (size_t)sample * area + pixel;
    float v[IMG_CHANNELS];
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) v[i] = x[place * IMG_CHANNELS + i];
    if (sample < pictures) {
        const float* const masks[MASKS] = {mask_0, mask_1, mask_2};
#pragma unroll
        for (int k = 0; k < MASKS; ++k) {
            if (masks[k] == nullptr) continue;
            const float share = mask_at(masks[k], mask_side, (float)mask_side / side, pixel / side, pixel % side);
            const float* const other = second + ((size_t)k * area + pixel) * IMG_CHANNELS;
#pragma unroll
            for (int i = 0; i < IMG_CHANNELS; ++i)
                if (share != 0.0f) v[i] = blended(v[i], other[i], share);
        }
    }
    if (image != nullptr) {
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) image[place * IMG_CHANNELS + i] = v[i];
    }
    if (pixels == nullptr) return;
    bool is_finite = true;
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) is_finite &= isfinite(v[i]);
    pixels[place] = pixel_of(v);
    if (!is_finite) atomicOr(flags + sample, 1u);
}
