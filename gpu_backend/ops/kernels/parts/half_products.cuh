// Small matrix products on tensor cores with fp16 sums, two in a word. The result has the register layout of the next product's
// operand.
#pragma once
#include "parts/halves.cuh"

// Loads four 8 x 8 matrices, each transposed; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix_trans(unsigned (&value)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(address));
}

#if LEVEL >= 900
// Stores four 8 x 8 matrices of a warp, as they are or transposed; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(unsigned address, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

__device__ __forceinline__ void store_turned(unsigned address, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(a), "r"(b), "r"(c),
                 "r"(d)
                 : "memory");
}
#endif

// Transposes an 8 x 8 matrix of a warp.
__device__ __forceinline__ unsigned turned(unsigned value) {
    unsigned other;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(other) : "r"(value));
    return other;
}

// a (16 x 16) * b (16 x 8) + c (16 x 8). The result has the layout of half an operand a.
__device__ __forceinline__ void product_plus(
    unsigned (&result)[2], const unsigned (&a)[4], const unsigned (&b)[2], unsigned c0, unsigned c1) {
#if LEVEL >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};\n"
                 : "=r"(result[0]), "=r"(result[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c0), "r"(c1));
#else
    unsigned half[2];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};\n"
                 : "=r"(half[0]), "=r"(half[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c0), "r"(c1));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};\n"
                 : "=r"(result[0]), "=r"(result[1])
                 : "r"(a[2]), "r"(a[3]), "r"(b[1]), "r"(half[0]), "r"(half[1]));
#endif
}

__device__ __forceinline__ void product(unsigned (&result)[2], const unsigned (&a)[4], const unsigned (&b)[2]) {
    product_plus(result, a, b, 0u, 0u);
}
