// What becomes of eight neighbouring channels of a convolution's sums in a discriminator, or of an adjoint's:
//
//     v = unit * sum + bias,   v where v > 0, else slope * v   its sign -> `mask`
//     v = v + add                                             -> `out`
//     v * (1 where `signs` has a bit, else 0.2)               -> `u`
//
// Arrays are fp16, [sample][side][side][channels], but for the bias, and for masks, a byte for eight channels (parts/discriminator_signs.cuh). Those that are null are left out; a slope of 1 is no activation.
// Macro TAPS: 0, or those of the filter where the sums are the gradient of a block's input, to which the rest of it is added before `out`
// (parts/discriminator_join.cuh).
#pragma once
#include "parts/discriminator_signs.cuh"
#include "parts/gradient_constants.cuh"
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

// What eight channels of a pixel need from memory for their end.
struct EndInputs {
    uint4 add;
    signs_byte signs;
#if TAPS
    JoinedInputs joined;
#endif
};

__device__ __forceinline__ void load_end(
    EndInputs& inputs, int sample, int y, int x, int side, int channel, int channels,
#if TAPS
    DISCRIMINATOR_END_PARAMETERS, DISCRIMINATOR_JOIN_PARAMETERS) {
#else
    DISCRIMINATOR_END_PARAMETERS) {
#endif
    const size_t place = (size_t)sample * side * side * channels + ((y * side + x) * channels + channel);
    if (add) inputs.add = *reinterpret_cast<const uint4*>(add + place);
    if (u) inputs.signs = signs[place / 8];
#if TAPS
    load_joined(inputs.joined, sample, y, x, side, channel, channels, DISCRIMINATOR_JOIN_ARGUMENTS);
#endif
}

__device__ __forceinline__ void end_channels(
    float (&v)[8], const EndInputs& inputs, int sample, int y, int x, int side, int channel, int channels,
#if TAPS
    DISCRIMINATOR_END_PARAMETERS, DISCRIMINATOR_JOIN_PARAMETERS) {
#else
    DISCRIMINATOR_END_PARAMETERS) {
#endif
    const size_t place = (size_t)sample * side * side * channels + ((y * side + x) * channels + channel);
    float b[8] = {}, q[8];
    if (bias) load_many(bias + channel, b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        v[i] = fmaf(unit, v[i], b[i]);
        v[i] = v[i] > 0.0f ? v[i] : slope * v[i];
    }
    if (mask) mask[place / 8] = signs_of(v);
    if (add) {
        from_half8(inputs.add, q);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] += q[i];
    }
#if TAPS
    add_joined(v, inputs.joined, from != nullptr, map != nullptr, map ? level * scale[sample] : 0.0f);
#endif
    if (out) store_many(out + place, v);
    if (!u) return;
    through_activation(v, inputs.signs);
    store_many(u + place, v);
}
