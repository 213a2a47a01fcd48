// Tensor cores, and what feeds them: asynchronous copies, matrix loads, products of 16-bit numbers summed in 32 bits.
// Macros: DEPTH (input channels a step), WGMMA.
#pragma once

#include "parts/copies.cuh"
#include "parts/halves.cuh"

// Four 8 x 8 matrices of 16-bit numbers; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&value)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(address));
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8)
__device__ __forceinline__ void mma_m16n8k16(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if LEVEL >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

// Rows of 32, 64 or 128 bytes lie side by side; their 16-byte chunks are swizzled so that eight rows that are read
// together meet eight different groups of banks. These are also the 32-, 64- and 128-byte modes of wgmma.
__device__ __forceinline__ int swizzle(int chunk, int row) {
    if (DEPTH == 64) return chunk ^ (row & 7);
    if (DEPTH == 32) return chunk ^ ((row >> 1) & 3);
    return chunk ^ ((row >> 2) & 1);
}

#if WGMMA
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

// A value that is the same in all lanes of a warp, known to the compiler as such: descriptors are computed once a warp.
__device__ __forceinline__ int warp_uniform(int value) { return static_cast<int>(__reduce_max_sync(0xffffffffu, static_cast<unsigned>(value))); }

// Descriptor of a matrix whose rows hold DEPTH numbers along k, chunks swizzled as above: its lower half, which says where
// the matrix begins, in units of 16 bytes; and its upper half, the same for all, so that moving on is one small addition.
__device__ __forceinline__ unsigned matrix_descriptor(unsigned address) { return ((address & 0x3FFFFu) >> 4) | (1u << 16); }
#define MATRIX_ROWS ((DEPTH == 64 ? 1u : DEPTH == 32 ? 2u : 3u) << 30 | (DEPTH * 16 >> 4))

// sum (64 x CHANNELS_ over four warps, 16 rows each) += a (64 x 16, in registers) * b (16 x CHANNELS_, in shared memory)
template <int CHANNELS_>
__device__ __forceinline__ void wgmma(float* sum, const unsigned (&a)[4], unsigned b);

// The same where sum was 0, or nothing yet.
template <int CHANNELS_>
__device__ __forceinline__ void wgmma_first(float* sum, const unsigned (&a)[4], unsigned b);

// Eight channels are four sums of a thread: their operands and their names, as many as channels, and what the factors are called.
#define F4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUMS_8 F4(0)
#define NAMES_8 "%0, %1, %2, %3"
#define SUMS_16 SUMS_8, F4(4)
#define NAMES_16 NAMES_8 ", %4, %5, %6, %7"
#define SUMS_24 SUMS_16, F4(8)
#define NAMES_24 NAMES_16 ", %8, %9, %10, %11"
#define SUMS_32 SUMS_24, F4(12)
#define NAMES_32 NAMES_24 ", %12, %13, %14, %15"
#define SUMS_40 SUMS_32, F4(16)
#define NAMES_40 NAMES_32 ", %16, %17, %18, %19"
#define SUMS_48 SUMS_40, F4(20)
#define NAMES_48 NAMES_40 ", %20, %21, %22, %23"
#define SUMS_56 SUMS_48, F4(24)
#define NAMES_56 NAMES_48 ", %24, %25, %26, %27"
#define SUMS_64 SUMS_56, F4(28)
#define NAMES_64 NAMES_56 ", %28, %29, %30, %31"
#define SUMS_72 SUMS_64, F4(32)
#define NAMES_72 NAMES_64 ", %32, %33, %34, %35"
#define SUMS_80 SUMS_72, F4(36)
#define NAMES_80 NAMES_72 ", %36, %37, %38, %39"
#define SUMS_88 SUMS_80, F4(40)
#define NAMES_88 NAMES_80 ", %40, %41, %42, %43"
#define SUMS_96 SUMS_88, F4(44)
#define NAMES_96 NAMES_88 ", %44, %45, %46, %47"
#define SUMS_104 SUMS_96, F4(48)
#define NAMES_104 NAMES_96 ", %48, %49, %50, %51"
#define SUMS_112 SUMS_104, F4(52)
#define NAMES_112 NAMES_104 ", %52, %53, %54, %55"
#define SUMS_120 SUMS_112, F4(56)
#define NAMES_120 NAMES_112 ", %56, %57, %58, %59"
#define SUMS_128 SUMS_120, F4(60)
#define NAMES_128 NAMES_120 ", %60, %61, %62, %63"
#define WGMMA_OF(N, A, B)                                                                                                  \
    WGMMA_AS(wgmma, "1", N, A, B)                                                                                          \
    WGMMA_AS(wgmma_first, "0", N, A, B)
#define WGMMA_AS(NAME, ADDS, N, A, B)                                                                                      \
    template <>                                                                                                            \
    __device__ __forceinline__ void NAME<N>(float* sum, const unsigned (&a)[4], unsigned b) {                              \
        asm volatile("{.reg .b64 matrix; mov.b64 matrix, {" B "}; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" \
                     NAMES_##N "}, {" A "}, matrix, " ADDS ", 1, 1, 0;}\n"                                                  \
                     : SUMS_##N                                                                                            \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));                               \
    }
WGMMA_OF(16, "%8, %9, %10, %11", "%12, %13")
WGMMA_OF(24, "%12, %13, %14, %15", "%16, %17")
WGMMA_OF(32, "%16, %17, %18, %19", "%20, %21")
WGMMA_OF(40, "%20, %21, %22, %23", "%24, %25")
WGMMA_OF(48, "%24, %25, %26, %27", "%28, %29")
WGMMA_OF(56, "%28, %29, %30, %31", "%32, %33")
WGMMA_OF(64, "%32, %33, %34, %35", "%36, %37")
WGMMA_OF(72, "%36, %37, %38, %39", "%40, %41")
WGMMA_OF(80, "%40, %41, %42, %43", "%44, %45")
WGMMA_OF(88, "%44, %45, %46, %47", "%48, %49")
WGMMA_OF(96, "%48, %49, %50, %51", "%52, %53")
WGMMA_OF(104, "%52, %53, %54, %55", "%56, %57")
WGMMA_OF(112, "%56, %57, %58, %59", "%60, %61")
WGMMA_OF(120, "%60, %61, %62, %63", "%64, %65")
WGMMA_OF(128, "%64, %65, %66, %67", "%68, %69")
#undef WGMMA_OF
#undef WGMMA_AS
#undef F4
#endif
