// Arithmetic on two numbers of 16 bits in a word. Macro ACTIVATION: as in activation.
#pragma once

// a * b + c for both numbers of a word
__device__ __forceinline__ unsigned multiply_add2(unsigned a, unsigned b, unsigned c) {
    unsigned sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

__device__ __forceinline__ unsigned add2(unsigned a, unsigned b) {
    unsigned sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

// outer + 3 inner
__device__ __forceinline__ unsigned add_thrice2(unsigned outer, unsigned inner) { return multiply_add2(0x42004200u, inner, outer); }

#if ACTIVATION <= 2 && LEVEL >= 800
// Activation and clamp of two numbers, their gain already in them.
__device__ __forceinline__ unsigned activated2(unsigned word, unsigned bound) {
#if ACTIVATION == 1
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(0u));
#elif ACTIVATION == 2
    asm("max.f16x2 %0, %0, %1;" : "+r"(word) : "r"(multiply_add2(word, 0x32663266u, 0u)));  // times 0.2
#endif
#if LEVEL >= 860
    asm("min.NaN.xorsign.abs.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound));  // the smaller size, the sign of both
#else
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound ^ 0x80008000u));
    asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound));
#endif
    return word;
}
#endif
