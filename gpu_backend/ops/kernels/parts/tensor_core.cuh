// Products on tensor cores: matrix loads from shared memory, and mma of fp16, tf32, bf16 or e4m3 numbers summed in fp32.
// Macros: HALF, DEPTH (input channels of a pipeline step); BF16X3, see parts/words.cuh; FP8_X, see parts/e4m3.cuh.
//
// Any mma takes 32 bytes of a row of each operand: 32 channels of e4m3, 16 of fp16 or 8 of tf32. Everything
// else is counted in bytes, so the code is the same for all: ldmatrix gives each lane the 32 bits that each instruction reads there.
//
// With BF16X3 a number x is high + low: high = bf16(x), low = bf16(x - high). A product takes 64 bytes of a row, sixteen channels:
// of activations as fp32, which registers split; of weights 32 bytes of high parts, then 32 bytes of low parts. Of the four products
// of parts low * low is left out: at most 2^-16 of the product, as much as the rounding of `low`.
#pragma once

#include "parts/copies.cuh"
#include "parts/e4m3.cuh"
#include "parts/halves.cuh"
#include "parts/swizzle.cuh"
#include "parts/words.cuh"

enum : int {
    OPERAND_NBYTES = FP8_X ? 1 : ELEMENT_NBYTES,
    ROW_NBYTES = DEPTH * OPERAND_NBYTES,
    PLANES = BF16X3 ? 2 : 1,                     // of numbers in a fragment: high and low parts
    PRODUCT_NBYTES = 32 * PLANES,                // of a row
    PRODUCTS = ROW_NBYTES / PRODUCT_NBYTES,      // of a pipeline step, along the input channels
};
static_assert(!BF16X3 || (!HALF && DEPTH % 16 == 0), "a product of bf16 takes sixteen channels of fp32");

// What a lane holds of an operand of a product.
struct Fragment {
    unsigned words[PLANES][4];
};

// Loads four matrices of eight rows of 16 bytes. Lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&value)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(address));
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8), fp16. Before Ampere the instruction takes half as many input channels.
__device__ __forceinline__ void mma_m16n8k16(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (LEVEL >= 800) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(b0));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[2]), "r"(a[3]), "r"(b1));
    }
}

// sum (16 x 8) += a (16 x 8) * b (8 x 8), tf32. From Ampere on.
__device__ __forceinline__ void mma_m16n8k8_tf32(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8), bf16. From Ampere on.
__device__ __forceinline__ void mma_m16n8k16_bf16(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum (16 x 8) += a (16 x 32) * b (32 x 8), e4m3. From sm_89 on.
__device__ __forceinline__ void mma_m16n8k32_e4m3(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two fp32 numbers as bf16, `first` in the lower half: their high and low parts.
__device__ __forceinline__ void split_bf16(unsigned first, unsigned second, unsigned& high, unsigned& low) {
    const float a = __uint_as_float(first), b = __uint_as_float(second);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(b), "f"(a));
    const float rest_a = a - __uint_as_float(high << 16), rest_b = b - __uint_as_float(high & 0xFFFF0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(rest_b), "f"(rest_a));
}

// sum += a * b for the bytes of a product, of activations (a) and of weights (b): of the first eight output channels of b, or the next.
__device__ __forceinline__ void mma_step(float* sum, const Fragment& a, const Fragment& b, int next) {
    if constexpr (FP8_X) {
        mma_m16n8k32_e4m3(sum, a.words[0], b.words[0][2 * next], b.words[0][2 * next + 1]);
    } else if constexpr (HALF) {
        mma_m16n8k16(sum, a.words[0], b.words[0][2 * next], b.words[0][2 * next + 1]);
    } else if constexpr (BF16X3) {
        mma_m16n8k16_bf16(sum, a.words[PLANES - 1], b.words[0][2 * next], b.words[0][2 * next + 1]);
        mma_m16n8k16_bf16(sum, a.words[0], b.words[PLANES - 1][2 * next], b.words[PLANES - 1][2 * next + 1]);
        mma_m16n8k16_bf16(sum, a.words[0], b.words[0][2 * next], b.words[0][2 * next + 1]);
    } else {
        mma_m16n8k8_tf32(sum, a.words[0], b.words[0][2 * next], b.words[0][2 * next + 1]);
    }
}

// Of the rows of a pipeline step, see parts/swizzle.cuh.
__device__ __forceinline__ int swizzle(int chunk, int row) { return swizzled<ROW_NBYTES>(chunk, row); }
