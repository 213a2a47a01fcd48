// What becomes of eight neighbouring channels of a convolution's sums in a discriminator, or of an adjoint's:
//
//     v = unit * sum + bias,   v = v where v > 0, else slope * v   -> `z`
//     v = v + add                                                 -> `out`
//     v * (1 where signs > 0, else 0.2)                           -> `u`
//
// Arrays are fp16 but for the bias. Those that are null are left out; a slope of 1 is no activation.
#pragma once

#define DISCRIMINATOR_END_PARAMETERS                                                                             \
    const float* __restrict__ bias, half_bits* __restrict__ z, const half_bits* __restrict__ add,                \
        half_bits* __restrict__ out, const half_bits* __restrict__ signs, half_bits* __restrict__ u, float unit, \
        float slope
#define DISCRIMINATOR_END_ARGUMENTS bias, z, add, out, signs, u, unit, slope
#define ACTIVATION_SLOPE 0.2f

__device__ __forceinline__ void end_channels(float (&v)[8], int channel, size_t place, DISCRIMINATOR_END_PARAMETERS) {
    float b[8] = {}, q[8];
    if (bias) load_many(bias + channel, b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        v[i] = fmaf(unit, v[i], b[i]);
        v[i] = v[i] > 0.0f ? v[i] : slope * v[i];
    }
    if (z) store_many(z + place, v);
    if (add) {
        load_many(add + place, q);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] += q[i];
    }
    if (out) store_many(out + place, v);
    if (!u) return;
    load_many(signs + place, q);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] *= q[i] > 0.0f ? 1.0f : ACTIVATION_SLOPE;
    store_many(u + place, v);
}
