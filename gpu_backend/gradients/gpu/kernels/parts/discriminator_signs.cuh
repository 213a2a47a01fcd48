// Signs of eight neighbouring channels in a byte, which is all that the way back through leaky ReLU needs.
#pragma once

typedef unsigned char signs_byte;

#define ACTIVATION_SLOPE 0.2f

// Bit i is set where v[i] > 0.
__device__ __forceinline__ signs_byte signs_of(const float (&v)[8]) {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) bits |= v[i] > 0.0f ? 1u << i : 0u;
    return (signs_byte)bits;
}

__device__ __forceinline__ void through_activation(float (&v)[8], signs_byte signs) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] *= signs >> i & 1 ? 1.0f : ACTIVATION_SLOPE;
}
