// Elements of tensors with channels last, eight, four or one at a time. TYPE: 0 float32, 1 float16, 2 bfloat16. V: how
// many neighbouring channels a thread has; a picture has a multiple of that. All arithmetic is float32.
#pragma once
#define THREADS 256

#if TYPE == 0
typedef float T;
#else
typedef unsigned short T;
#endif

__device__ __forceinline__ float from_bits(unsigned short bits) {
#if TYPE == 1
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
#else
    return __uint_as_float((unsigned)bits << 16);
#endif
}

// Rounds to nearest even; too large becomes infinite, so that a loss scale that is too large is found out.
__device__ __forceinline__ unsigned short to_bits(float v) {
#if TYPE == 1
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
    return bits;
#else
    const unsigned word = __float_as_uint(v);
    if ((word & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (unsigned short)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
#endif
}

// Two numbers as one word, `low` first in memory.
__device__ __forceinline__ unsigned to_bits2(float low, float high) {
#if TYPE == 1 && __CUDA_ARCH__ >= 800
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#elif TYPE == 2 && __CUDA_ARCH__ >= 800
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return (unsigned)to_bits(low) | ((unsigned)to_bits(high) << 16);
#endif
}

// v held within -bound .. bound; a number that is not one stays so (fminf would hide it).
__device__ __forceinline__ float bounded(float v, float bound) {
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(v), "f"(-bound));
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(v), "f"(bound));
    return v;
#else
    v = v < -bound ? -bound : v;
    return v > bound ? bound : v;
#endif
}

struct Elements {
    float of[V];
};

__device__ __forceinline__ Elements load(const T* from) {
    Elements e;
#if V == 1
#if TYPE == 0
    e.of[0] = *from;
#else
    e.of[0] = from_bits(*from);
#endif
#elif TYPE == 0
    const float4 q = *reinterpret_cast<const float4*>(from);
    e.of[0] = q.x, e.of[1] = q.y, e.of[2] = q.z, e.of[3] = q.w;
#else
    const uint4 q = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        e.of[2 * i] = from_bits((unsigned short)(words[i] & 0xffffu));
        e.of[2 * i + 1] = from_bits((unsigned short)(words[i] >> 16));
    }
#endif
    return e;
}

__device__ __forceinline__ void store(T* to, const Elements& e) {
#if V == 1
#if TYPE == 0
    *to = e.of[0];
#else
    *to = to_bits(e.of[0]);
#endif
#elif TYPE == 0
    *reinterpret_cast<float4*>(to) = make_float4(e.of[0], e.of[1], e.of[2], e.of[3]);
#else
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = to_bits2(e.of[2 * i], e.of[2 * i + 1]);
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
#endif
}

// The channels of a thread, of values in float32.
__device__ __forceinline__ Elements of_channels(const float* values) {
    Elements e;
#pragma unroll
    for (int i = 0; i < V; ++i) e.of[i] = values[i];
    return e;
}
