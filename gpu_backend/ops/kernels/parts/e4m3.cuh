// Numbers of 8 bits, e4m3: sign, 4 bits of exponent, 3 of fraction; largest 448, smallest 2^-9. NaN is 127 and 255; there is no infinity.
// Macros, 0 where a kernel does not define them; FP8_X is for convolutions:
//     FP8_X   0, or x and the weights are e4m3, and their products FP8_X times too large; of up_filter.cu, what it reads is
//     FP8_Y   0, or y is e4m3, FP8_Y times the number
#pragma once
#include "parts/types.cuh"

#ifndef FP8_X
#define FP8_X 0
#endif
#ifndef FP8_Y
#define FP8_Y 0
#endif

typedef unsigned char e4m3_bits;

#if FP8_X
typedef e4m3_bits X;
#else
typedef T X;
#endif
#if FP8_Y
typedef e4m3_bits Y;
#else
typedef T Y;
#endif

// Factors that undo FP8_X, and make FP8_Y; 1 without them.
#define FP8_X_UNIT (1.0f / (FP8_X ? FP8_X : 1))
#define FP8_Y_UNIT (FP8_Y ? float(FP8_Y) : 1.0f)

__device__ __forceinline__ float from_e4m3(e4m3_bits bits) {
    if ((bits & 127) == 127) return __uint_as_float(0x7FC00000u);
    // The bits of an fp16 whose exponent is 8 too small.
    return from_half((half_bits)((bits & 128) << 8 | (bits & 127) << 7)) * 256.0f;
}

// Rounds to nearest even. Out of range it saturates to 448; NaN stays NaN.
__device__ __forceinline__ e4m3_bits to_e4m3(float v) {
    const unsigned word = __float_as_uint(v), sign = word >> 24 & 128;
    if (v != v) return (e4m3_bits)(sign | 127);
    const float size = fminf(fabsf(v), 448.0f);
    if (size < 0.015625f) return (e4m3_bits)(sign | (unsigned)__float2int_rn(size * 512.0f));
    const unsigned bits = __float_as_uint(size);
    return (e4m3_bits)(sign | ((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - (120 << 3));
}

// Two words of two fp16 numbers, in order, converted as by to_e4m3. From sm_89 on.
__device__ __forceinline__ unsigned to_e4m3x4(unsigned low, unsigned high) {
    unsigned word;
    asm("{.reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f16x2 l, %1; cvt.rn.satfinite.e4m3x2.f16x2 h, %2; mov.b32 %0, {l, h};}"
        : "=r"(word) : "r"(low), "r"(high));
    return word;
}

// The reverse: four numbers to two words of two fp16 numbers.
__device__ __forceinline__ void from_e4m3x4(unsigned word, unsigned& low, unsigned& high) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h;}" : "=r"(low), "=r"(high) : "r"(word));
}

template <int N>
__device__ __forceinline__ void load_many(const e4m3_bits* from, float (&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = from_e4m3(from[i]);
}

template <int N>
__device__ __forceinline__ void store_many(e4m3_bits* to, const float (&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = to_e4m3(v[i]);
}
