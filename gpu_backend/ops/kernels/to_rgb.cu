// The end of toRGB (gpu_backend/ops/to_rgb.py) and, at the last resolution, the bytes of gpu_backend/ops/to_display.py:
//     image = gain clamp(sum of parts + bias) + U(previous)
//     image += m (second - image)    with HAS_BLEND: one second latent of gpu_backend/ops/blend_samples.py
//     byte = trunc(clamp(image * 127.5 + MIDDLE_TWICE / 2, 0, 255)), in the order B, G, R, X
// Macros: IMG_CHANNELS, TAPS (of `taps`, which include gain 2 per axis), MIDDLE_TWICE (see parts/bytes.cuh), PIXELS of a thread: 1, or
// 4 neighbours of a row if 4 divides `side`, so that a thread loads and stores 16 bytes at a time.
// `parts`: (part_count, batch, side, side, IMG_CHANNELS). second: (side, side, IMG_CHANNELS); mask: (mask_side, mask_side), mask_step:
// mask_side / side. Null pointers: no bias, no previous picture, image or pixels not wanted.
// flags[b] gets bit 0 if a number of sample b is not finite.
// Grid: groups of PIXELS of a sample, 256 per block; samples.
#include "parts/doubling.cuh"
#include "parts/bytes.cuh"
#include "parts/masks.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    COUNT = PIXELS * IMG_CHANNELS,  // numbers of a thread
    DOUBLES_ROWS = PIXELS == 4 && TAPS == 4,
};

// With DOUBLES_ROWS. Adds U(low) to the pixels (row, column .. column + 3), which read two rows and four columns of `low`. Along an
// axis, output u is number (u - 1) / 2 of low times tap 3 (even u) or 2 (odd u), plus the next number times tap 1 or 0.
__device__ __forceinline__ void add_doubled_pixels(float (&v)[COUNT], const float* low, const float* taps, int side, int row, int column) {
    const int low_side = side >> 1, first_row = (row + 1 >> 1) - 1, first_column = (column >> 1) - 1;
    const float above = taps[row & 1 ? 2 : 3], below = taps[row & 1 ? 0 : 1];
    float kept[4][IMG_CHANNELS];
#pragma unroll
    for (int x = 0; x < 4; ++x) {
        const int at = first_column + x;
        const bool is_inside = static_cast<unsigned>(at) < static_cast<unsigned>(low_side);
        const bool has_above = is_inside && first_row >= 0, has_below = is_inside && first_row + 1 < low_side;
        const float* const from = low + (static_cast<long long>(first_row) * low_side + at) * IMG_CHANNELS;
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) {
            const float high = has_above ? from[i] : 0.0f, deep = has_below ? from[low_side * IMG_CHANNELS + i] : 0.0f;
            kept[x][i] = doubled_from(high, above, deep, below);
        }
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        const int x = (p + 1) / 2;
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) {
            v[p * IMG_CHANNELS + i] += doubled_from(kept[x][i], taps[p & 1 ? 2 : 3], kept[x + 1][i], taps[p & 1 ? 0 : 1]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) to_rgb(
    const float* __restrict__ parts, int part_count, const float* __restrict__ bias, float clamp,
    const float* __restrict__ previous, const float* __restrict__ taps,
#if HAS_BLEND
    const float* __restrict__ second, const float* __restrict__ mask, int mask_side, float mask_step,
#endif
    float* __restrict__ image,
    unsigned char* __restrict__ pixels, unsigned* __restrict__ flags, int batch, int side, float gain) {
    wait_for_previous_kernel();
    const int b = blockIdx.y, area = side * side, pixel = (blockIdx.x * 256 + threadIdx.x) * PIXELS;
    if (pixel >= area) return;
    const size_t place = (size_t)b * area + pixel, part = (size_t)batch * area * IMG_CHANNELS;
    float v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) v[i] = 0.0f;
#pragma unroll(PIXELS == 1 ? 8 : 2)
    for (int p = 0; p < part_count; ++p) {
        float own[COUNT];
        load_many<COUNT>(parts + p * part + place * IMG_CHANNELS, own);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] += own[i];
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) v[i] = __fmul_rn(gain, bounded(v[i] + (bias == nullptr ? 0.0f : bias[i % IMG_CHANNELS]), clamp));
    if (previous != nullptr) {
        const size_t half_side = side >> 1;
        const float* const low = previous + b * half_side * half_side * IMG_CHANNELS;
        if constexpr (DOUBLES_ROWS) {
            add_doubled_pixels(v, low, taps, side, pixel / side, pixel % side);
        } else {
#pragma unroll
            for (int p = 0; p < PIXELS; ++p) {
                float one[IMG_CHANNELS];
#pragma unroll
                for (int i = 0; i < IMG_CHANNELS; ++i) one[i] = v[p * IMG_CHANNELS + i];
                add_doubled<IMG_CHANNELS>(one, low, taps, side, IMG_CHANNELS, (pixel + p) / side, (pixel + p) % side);
#pragma unroll
                for (int i = 0; i < IMG_CHANNELS; ++i) v[p * IMG_CHANNELS + i] = one[i];
            }
        }
    }
#if HAS_BLEND
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
        const float share = mask_at(mask, mask_side, mask_step, (pixel + p) / side, (pixel + p) % side);
        if (share == 0.0f) continue;
#pragma unroll
        for (int i = p * IMG_CHANNELS; i < (p + 1) * IMG_CHANNELS; ++i) v[i] = blended(v[i], second[pixel * IMG_CHANNELS + i], share);
    }
#endif
    if (image != nullptr) store_many<COUNT>(image + place * IMG_CHANNELS, v);
    if (pixels != nullptr) {
        bool is_finite = true;
        unsigned words[PIXELS];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) is_finite &= isfinite(v[i]);
#pragma unroll
        for (int p = 0; p < PIXELS; ++p) words[p] = pixel_of(v + p * IMG_CHANNELS);
        if constexpr (PIXELS == 4) {
            reinterpret_cast<uint4*>(pixels)[place / 4] = make_uint4(words[0], words[1], words[2], words[3]);
        } else {
            reinterpret_cast<unsigned*>(pixels)[place] = words[0];
        }
        if (!is_finite) atomicOr(flags + b, 1u);
    }
}
