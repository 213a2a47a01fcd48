// Storage types, and conversions to and from float. Macro HALF: 1, activations are stored as fp16; 0, as fp32.
// All arithmetic is fp32. NVRTC declares __half only in the toolkit's headers, so fp16 is its 16 bits and PTX converts.
#pragma once

// Compute capability of the code, times 100: 800 for sm_80. Tests give an older one as a macro, to run its code on their GPU.
#ifndef LEVEL
#define LEVEL __CUDA_ARCH__
#endif

typedef unsigned short half_bits;

#if HALF
typedef half_bits T;
#else
typedef float T;
#endif

#define LARGEST_HALF 65504.0f

// v clamped to -bound .. bound. NaN stays NaN, where fminf would hide it, so that the frame's flag reports it.
__device__ __forceinline__ float bounded(float v, float bound) {
    if constexpr (LEVEL >= 800) {
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(v), "f"(-bound));
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(v), "f"(bound));
        return v;
    } else {
        v = v < -bound ? -bound : v;
        return v > bound ? bound : v;
    }
}

__device__ __forceinline__ float from_half(half_bits bits) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
}

// Rounds to nearest even. Out of range it saturates to the largest finite value.
__device__ __forceinline__ half_bits to_half(float v) {
    half_bits bits;
    v = bounded(v, LARGEST_HALF);
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
    return bits;
}

// Two numbers in one word, `low` first in memory, converted as by to_half.
__device__ __forceinline__ unsigned to_half2(float low, float high) {
    if constexpr (LEVEL >= 800) {
        unsigned word;
        asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
        return word;
    } else {
        return (unsigned)to_half(low) | ((unsigned)to_half(high) << 16);
    }
}

__device__ __forceinline__ void from_half2(unsigned word, float& low, float& high) {
    low = from_half((half_bits)(word & 0xffffu));
    high = from_half((half_bits)(word >> 16));
}

// Loads or stores N neighbouring numbers, N = 1, 2, 4 or 8. The address is a multiple of min(N * size, 16) bytes.
template <int N>
__device__ __forceinline__ void load_many(const float* from, float (&v)[N]) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const float4 q = *reinterpret_cast<const float4*>(from + i);
            v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
        }
    } else if constexpr (N == 2) {
        const float2 q = *reinterpret_cast<const float2*>(from);
        v[0] = q.x, v[1] = q.y;
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = from[i];
    }
}

template <int N>
__device__ __forceinline__ void load_many(const half_bits* from, float (&v)[N]) {
    if constexpr (N == 8) {
        const uint4 q = *reinterpret_cast<const uint4*>(from);
        from_half2(q.x, v[0], v[1]), from_half2(q.y, v[2], v[3]);
        from_half2(q.z, v[4], v[5]), from_half2(q.w, v[6], v[7]);
    } else if constexpr (N == 4) {
        const uint2 q = *reinterpret_cast<const uint2*>(from);
        from_half2(q.x, v[0], v[1]), from_half2(q.y, v[2], v[3]);
    } else if constexpr (N == 2) {
        from_half2(*reinterpret_cast<const unsigned*>(from), v[0], v[1]);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] = from_half(from[i]);
    }
}

template <int N>
__device__ __forceinline__ void store_many(float* to, const float (&v)[N]) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4)
            *reinterpret_cast<float4*>(to + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    } else if constexpr (N == 2) {
        *reinterpret_cast<float2*>(to) = make_float2(v[0], v[1]);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = v[i];
    }
}

template <int N>
__device__ __forceinline__ void store_many(half_bits* to, const float (&v)[N]) {
    if constexpr (N == 8) {
        *reinterpret_cast<uint4*>(to) =
            make_uint4(to_half2(v[0], v[1]), to_half2(v[2], v[3]), to_half2(v[4], v[5]), to_half2(v[6], v[7]));
    } else if constexpr (N == 4) {
        *reinterpret_cast<uint2*>(to) = make_uint2(to_half2(v[0], v[1]), to_half2(v[2], v[3]));
    } else if constexpr (N == 2) {
        *reinterpret_cast<unsigned*>(to) = to_half2(v[0], v[1]);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = to_half(v[i]);
    }
}
