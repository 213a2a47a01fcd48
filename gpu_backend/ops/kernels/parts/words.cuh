// Activations in 32-bit words: two neighbouring channels of fp16, or one of fp32. Macros: HALF, see parts/types.cuh; ACTIVATION; and
//     BF16X3  without HALF: 1, tensor cores multiply fp32 operands as sums of two bf16 numbers; 0, as tf32
//
// Tensor cores read tf32 without the last 13 bits of the fraction. What they read is therefore rounded to tf32 when it is stored
// (`styled`, `to_factor`); other outputs keep all bits. With BF16X3 all outputs do.
#pragma once
#ifndef BF16X3
#define BF16X3 0
#endif
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/halves.cuh"

#define ELEMENT_NBYTES (HALF ? 2 : 4)
#define CHUNK (16 / ELEMENT_NBYTES)         // channels of 16 bytes
#define WORD_CHANNELS (4 / ELEMENT_NBYTES)  // channels of a word
#define PAIR_WORDS (ELEMENT_NBYTES / 2)     // words of two neighbouring channels

// Constants of kernels are enumerators: NVRTC gives every constexpr variable memory on the GPU, used or not.
enum : unsigned {  // in every number of a word
    WORD_ONE = HALF ? 0x3C003C00u : 0x3F800000u,
    WORD_MINUS_ONE = HALF ? 0xBC00BC00u : 0xBF800000u,
    FLOAT_THREE = 0x40400000u,
};

struct Pair {
    unsigned words[PAIR_WORDS];
};

// Rounds to 10 bits of fraction, ties away from zero. From sm_80 on.
__device__ __forceinline__ unsigned to_tf32(float v) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return bits;
}

__device__ __forceinline__ T to_element(float v) {
    if constexpr (HALF) return to_half(v);
    else return v;
}

// An operand of tensor cores.
__device__ __forceinline__ T to_factor(float v) {
    if constexpr (HALF) return to_half(v);
    else if constexpr (BF16X3) return v;
    else return __uint_as_float(to_tf32(v));
}

// A word whose numbers are all v.
__device__ __forceinline__ unsigned word_of(float v) {
    if constexpr (HALF) return to_half2(v, v);
    else return __float_as_uint(v);
}

__device__ __forceinline__ Pair pair_of(float low, float high) {
    Pair pair;
    if constexpr (HALF) {
        pair.words[0] = to_half2(low, high);
    } else {
        pair.words[0] = __float_as_uint(low), pair.words[PAIR_WORDS - 1] = __float_as_uint(high);
    }
    return pair;
}

__device__ __forceinline__ void from_pair(const Pair& pair, float& low, float& high) {
    if constexpr (HALF) {
        from_half2(pair.words[0], low, high);
    } else {
        low = __uint_as_float(pair.words[0]), high = __uint_as_float(pair.words[PAIR_WORDS - 1]);
    }
}

__device__ __forceinline__ unsigned word_add(unsigned a, unsigned b) {
    if constexpr (HALF) return add2(a, b);
    else return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
}

// a * b + c
__device__ __forceinline__ unsigned word_multiply_add(unsigned a, unsigned b, unsigned c) {
    if constexpr (HALF) return multiply_add2(a, b, c);
    else return __float_as_uint(fmaf(__uint_as_float(a), __uint_as_float(b), __uint_as_float(c)));
}

// outer + 3 inner
__device__ __forceinline__ unsigned word_add_thrice(unsigned outer, unsigned inner) {
    if constexpr (HALF) return add_thrice2(outer, inner);
    else return word_multiply_add(FLOAT_THREE, inner, outer);
}

// Times the style of the convolution that reads it.
__device__ __forceinline__ unsigned styled(unsigned word, unsigned style) {
    if constexpr (HALF) return multiply_add2(word, style, 0u);
    else if constexpr (BF16X3) return __float_as_uint(__uint_as_float(word) * __uint_as_float(style));
    else return to_tf32(__uint_as_float(word) * __uint_as_float(style));
}

__device__ __forceinline__ Pair styled(const Pair& pair, const Pair& style) {
    Pair result;
#pragma unroll
    for (int i = 0; i < PAIR_WORDS; ++i) result.words[i] = styled(pair.words[i], style.words[i]);
    return result;
}

__device__ __forceinline__ Pair load_pair(const void* from) {
    Pair pair;
    if constexpr (PAIR_WORDS == 1) {
        pair.words[0] = *static_cast<const unsigned*>(from);
    } else {
        const uint2 words = *static_cast<const uint2*>(from);
        pair.words[0] = words.x, pair.words[PAIR_WORDS - 1] = words.y;
    }
    return pair;
}

__device__ __forceinline__ void store_pair(void* to, const Pair& pair) {
    if constexpr (PAIR_WORDS == 1) {
        *static_cast<unsigned*>(to) = pair.words[0];
    } else {
        *static_cast<uint2*>(to) = make_uint2(pair.words[0], pair.words[PAIR_WORDS - 1]);
    }
}

// To an address in shared memory.
__device__ __forceinline__ void store_pair(unsigned to, const Pair& pair) {
    if constexpr (HALF) {
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pair.words[0]) : "memory");
    } else {
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(pair.words[0]), "r"(pair.words[PAIR_WORDS - 1]) : "memory");
    }
}

// Activation, gain and clamp of a word's numbers. `bound`: a word whose numbers are all `clamp`.
__device__ __forceinline__ unsigned activated_word(unsigned word, float gain_after, unsigned bound, float clamp) {
    if constexpr (!HALF) {
        return __float_as_uint(bounded(activate(__uint_as_float(word)) * gain_after, clamp));
    } else if constexpr (ACTIVATION <= LRELU && LEVEL >= 800) {
        return activated2(word, bound);
    } else {
        float low, high;
        from_half2(word, low, high);
        return to_half2(bounded(activate(low) * gain_after, clamp), bounded(activate(high) * gain_after, clamp));
    }
}

// Two numbers and their noise through activation and clamp. The usual activations are cheap on two fp16 numbers at a time, and the result
// is stored as fp16 anyway.
__device__ __forceinline__ Pair activated(float low, float high, const Pair& noise, float gain_after, unsigned bound, float clamp) {
    if constexpr (HALF && ACTIVATION <= 2 && LEVEL >= 800) {
        return {{activated2(multiply_add2(to_half2(low, high), WORD_ONE, noise.words[0]), bound)}};
    } else {
        float low_noise, high_noise;
        from_pair(noise, low_noise, high_noise);
        const float most = HALF ? from_half((half_bits)(bound & 0xffffu)) : clamp;
        return pair_of(bounded(activate(low + low_noise) * gain_after, most), bounded(activate(high + high_noise) * gain_after, most));
    }
}
