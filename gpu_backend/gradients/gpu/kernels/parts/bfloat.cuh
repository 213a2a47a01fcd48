// bfloat16 numbers: the upper half of a float's bits. Gradients are kept in them: their range is that of fp32.
#pragma once

__device__ __forceinline__ float from_bfloat(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

// Rounds to nearest even.
__device__ __forceinline__ unsigned short to_bfloat(float v) {
    const unsigned bits = __float_as_uint(v);
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ __forceinline__ void load_bfloats(const unsigned short* from, float (&v)[4]) {
    const uint2 q = *reinterpret_cast<const uint2*>(from);
    v[0] = __uint_as_float(q.x << 16), v[1] = __uint_as_float(q.x & 0xffff0000u);
    v[2] = __uint_as_float(q.y << 16), v[3] = __uint_as_float(q.y & 0xffff0000u);
}

__device__ __forceinline__ void store_bfloats(unsigned short* to, const float (&v)[4]) {
    *reinterpret_cast<uint2*>(to) = make_uint2(
        (unsigned)to_bfloat(v[0]) | ((unsigned)to_bfloat(v[1]) << 16),
        (unsigned)to_bfloat(v[2]) | ((unsigned)to_bfloat(v[3]) << 16));
}
