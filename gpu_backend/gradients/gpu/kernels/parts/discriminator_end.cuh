// What becomes of eight neighbouring channels of a convolution's sums in a discriminator, or of an adjoint's:
//
//     v = unit * sum + bias,   v where v > 0, else slope * v   its sign -> `mask`
//     v = v + add                                             -> `out`
//     v * (1 where `signs` has a bit, else 0.2)               -> `u`
//
// Arrays are fp16, [sample][side][side][channels], but for the bias, and for masks, a byte for eight channels (parts/discriminator_signs.cuh). Those
// that are null are left out; a slope of 1 is no activation.
// Macro TAPS: 0, or those of the filter where the sums are the gradient of a block's input, to which the rest of it is added before `out`
// (parts/discriminator_join.cuh).
#pragma once
#include "parts/discriminator_signs.cuh"
#if TAPS
#include "parts/discriminator_join.cuh"
#endif

#define DISCRIMINATOR_END_PARAMETERS                                                                             \
    const float* __restrict__ bias, signs_byte* __restrict__ mask, const half_bits* __restrict__ add,            \
        half_bits* __restrict__ out, const signs_byte* __restrict__ signs, half_bits* __restrict__ u,             \
        float unit, float slope
#if TAPS
#define DISCRIMINATOR_END_ARGUMENTS bias, mask, add, out, signs, u, unit, slope, DISCRIMINATOR_JOIN_ARGUMENTS
#else
#define DISCRIMINATOR_END_ARGUMENTS bias, mask, add, out, signs, u, unit, slope
#endif

// Of ROWS pixels below each other, from row y on; those below the picture are left out, but for a single one, which is in it. What they read is
// loaded together.
template <int ROWS>
__device__ __forceinline__ void end_channels(
    float (&v)[ROWS][8], int sample, int y, int x, int side, int channel, int channels,
#if TAPS
    DISCRIMINATOR_END_PARAMETERS, DISCRIMINATOR_JOIN_PARAMETERS) {
#else
    DISCRIMINATOR_END_PARAMETERS) {
#endif
    const size_t place = (((size_t)sample * side + y) * side + x) * channels + channel, step = (size_t)side * channels;
    auto is_there = [&](int row) { return ROWS == 1 || y + row < side; };
    float b[8] = {};
    uint4 added[ROWS] = {};
    signs_byte bits[ROWS] = {};
    if (bias) load_many(bias + channel, b);
    if (add)
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
            if (is_there(row)) added[row] = *reinterpret_cast<const uint4*>(add + place + row * step);
    if (u)
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
            if (is_there(row)) bits[row] = signs[(place + row * step) / 8];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[row][i] = fmaf(unit, v[row][i], b[i]);
            v[row][i] = v[row][i] > 0.0f ? v[row][i] : slope * v[row][i];
        }
        if (mask && is_there(row)) mask[(place + row * step) / 8] = signs_of(v[row]);
        const unsigned words[4] = {added[row].x, added[row].y, added[row].z, added[row].w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float low, high;
            from_half2(words[i], low, high);
            v[row][2 * i] += low, v[row][2 * i + 1] += high;
        }
    }
#if TAPS
    join(v, sample, y, x, side, channel, channels, DISCRIMINATOR_JOIN_ARGUMENTS);
#endif
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        if (!is_there(row)) continue;
        if (out) store_many(out + place + row * step, v[row]);
        if (!u) continue;
        through_activation(v[row], bits[row]);
        store_many(u + place + row * step, v[row]);
    }
}
