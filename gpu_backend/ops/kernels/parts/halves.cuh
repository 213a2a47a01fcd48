// Arithmetic on words of two fp16 numbers. Macro ACTIVATION: see parts/activation.cuh.
#pragma once

// a * b + c
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

// Linear, relu or lrelu, then the clamp, of two numbers with their gain applied. From sm_80 on.
__device__ __forceinline__ unsigned activated2(unsigned word, unsigned bound) {
    if constexpr (ACTIVATION == 1) asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(0u));
    if constexpr (ACTIVATION == 2) asm("max.f16x2 %0, %0, %1;" : "+r"(word) : "r"(multiply_add2(word, 0x32663266u, 0u)));  // times 0.2
    if constexpr (LEVEL >= 860) {
        asm("min.NaN.xorsign.abs.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound));  // the smaller magnitude, the product of the signs
    } else {
        asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound ^ 0x80008000u));
        asm("min.NaN.f16x2 %0, %0, %1;" : "+r"(word) : "r"(bound));
    }
    return word;
}
