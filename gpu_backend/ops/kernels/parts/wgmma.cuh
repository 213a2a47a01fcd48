// Hopper's wgmma: a warpgroup multiplies positions in registers by weights in shared memory, while its threads go on.
// Macros: HALF, DEPTH, USE_WGMMA; BF16X3, see parts/words.cuh; FP8_X, see parts/e4m3.cuh.
//
// The hardware writes the sums until wgmma_wait: between wgmma and wgmma_wait, kernels neither read nor write them. wgmma_fence_sums keeps the
// compiler from doing so: it may move what reads a register, but not the asm that waits, which does not name the sums.
#pragma once
#include "parts/tensor_core.cuh"

// Orders the registers and shared memory that were written so far before the products that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
// Waits until at most PENDING groups of this warpgroup are in flight.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(PENDING) : "memory");
}

// After wgmma_wait<0>: nothing that reads the sums is moved before it.
template <int COUNT>
__device__ __forceinline__ void wgmma_fence_sums(float (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

// The descriptor of a matrix in shared memory, whose rows hold ROW_NBYTES along k in swizzled chunks. Its lower word has the address in
// units of 16 bytes, so that the next matrix is one addition away; the upper word is the same for all matrices.
__device__ __forceinline__ unsigned matrix_descriptor(unsigned address) { return ((address & 0x3FFFFu) >> 4) | (1u << 16); }
enum : unsigned { DESCRIPTOR_ROWS = (ROW_NBYTES == 128 ? 1u : ROW_NBYTES == 64 ? 2u : 3u) << 30 | (ROW_NBYTES * 8 >> 4) };

// sum (64 x N over four warps, 16 rows each) += a (64 x 32 bytes, in registers) * b (32 bytes x N, in shared memory; a descriptor's lower word)
template <int N>
__device__ __forceinline__ void wgmma(float*, const unsigned (&)[4], unsigned) {
    static_assert(N < 0 || !USE_WGMMA, "there is no wgmma of this width");
}

// The same without the sum before, which need not be initialised.
template <int N>
__device__ __forceinline__ void wgmma_first(float*, const unsigned (&)[4], unsigned) {
    static_assert(N < 0 || !USE_WGMMA, "there is no wgmma of this width");
}

#if USE_WGMMA  // declarations, which would cost other kernels a sixth of the time in the compiler's frontend
// One specialisation a width, 16 to 256 output channels. Inline PTX takes no lists of registers, so macros write them: for N channels, a thread's
// N / 2 sums as operands (SUMS_N) and the placeholders of these operands (NAMES_N). WGMMA_OF adds the placeholders of a and b.
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
#if FP8_X  // parts of the instruction's text, so macros
#define WGMMA_TYPES "k32.f32.e4m3.e4m3"
#define WGMMA_SIGNS "1, 1"  // of a and of b
#elif HALF
#define WGMMA_TYPES "k16.f32.f16.f16"
#define WGMMA_SIGNS "1, 1, 0"  // and b is not transposed
#elif BF16X3
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#define WGMMA_SIGNS "1, 1, 0"
#else
#define WGMMA_TYPES "k8.f32.tf32.tf32"
#define WGMMA_SIGNS "1, 1"
#endif
#define WGMMA_OF(N, A, B)                                                                                                  \
    WGMMA_AS(wgmma, "1", N, A, B)                                                                                          \
    WGMMA_AS(wgmma_first, "0", N, A, B)
#define WGMMA_AS(NAME, ADDS, N, A, B)                                                                                      \
    template <>                                                                                                            \
    __device__ __forceinline__ void NAME<N>(float* sum, const unsigned (&a)[4], unsigned b) {                              \
        asm volatile("{.reg .b64 matrix; mov.b64 matrix, {" B "}; wgmma.mma_async.sync.aligned.m64n" #N WGMMA_TYPES " {" \
                     NAMES_##N "}, {" A "}, matrix, " ADDS ", " WGMMA_SIGNS ";}\n"                                                  \
                     : SUMS_##N                                                                                            \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(unsigned(DESCRIPTOR_ROWS)));                               \
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
#define SUMS_136 SUMS_128, F4(64)
#define NAMES_136 NAMES_128 ", %64, %65, %66, %67"
#define SUMS_144 SUMS_136, F4(68)
#define NAMES_144 NAMES_136 ", %68, %69, %70, %71"
#define SUMS_152 SUMS_144, F4(72)
#define NAMES_152 NAMES_144 ", %72, %73, %74, %75"
#define SUMS_160 SUMS_152, F4(76)
#define NAMES_160 NAMES_152 ", %76, %77, %78, %79"
#define SUMS_168 SUMS_160, F4(80)
#define NAMES_168 NAMES_160 ", %80, %81, %82, %83"
#define SUMS_176 SUMS_168, F4(84)
#define NAMES_176 NAMES_168 ", %84, %85, %86, %87"
#define SUMS_184 SUMS_176, F4(88)
#define NAMES_184 NAMES_176 ", %88, %89, %90, %91"
#define SUMS_192 SUMS_184, F4(92)
#define NAMES_192 NAMES_184 ", %92, %93, %94, %95"
#define SUMS_200 SUMS_192, F4(96)
#define NAMES_200 NAMES_192 ", %96, %97, %98, %99"
#define SUMS_208 SUMS_200, F4(100)
#define NAMES_208 NAMES_200 ", %100, %101, %102, %103"
#define SUMS_216 SUMS_208, F4(104)
#define NAMES_216 NAMES_208 ", %104, %105, %106, %107"
#define SUMS_224 SUMS_216, F4(108)
#define NAMES_224 NAMES_216 ", %108, %109, %110, %111"
#define SUMS_232 SUMS_224, F4(112)
#define NAMES_232 NAMES_224 ", %112, %113, %114, %115"
#define SUMS_240 SUMS_232, F4(116)
#define NAMES_240 NAMES_232 ", %116, %117, %118, %119"
#define SUMS_248 SUMS_240, F4(120)
#define NAMES_248 NAMES_240 ", %120, %121, %122, %123"
#define SUMS_256 SUMS_248, F4(124)
#define NAMES_256 NAMES_248 ", %124, %125, %126, %127"
WGMMA_OF(136, "%68, %69, %70, %71", "%72, %73")
WGMMA_OF(144, "%72, %73, %74, %75", "%76, %77")
WGMMA_OF(152, "%76, %77, %78, %79", "%80, %81")
WGMMA_OF(160, "%80, %81, %82, %83", "%84, %85")
WGMMA_OF(168, "%84, %85, %86, %87", "%88, %89")
WGMMA_OF(176, "%88, %89, %90, %91", "%92, %93")
WGMMA_OF(184, "%92, %93, %94, %95", "%96, %97")
WGMMA_OF(192, "%96, %97, %98, %99", "%100, %101")
WGMMA_OF(200, "%100, %101, %102, %103", "%104, %105")
WGMMA_OF(208, "%104, %105, %106, %107", "%108, %109")
WGMMA_OF(216, "%108, %109, %110, %111", "%112, %113")
WGMMA_OF(224, "%112, %113, %114, %115", "%116, %117")
WGMMA_OF(232, "%116, %117, %118, %119", "%120, %121")
WGMMA_OF(240, "%120, %121, %122, %123", "%124, %125")
WGMMA_OF(248, "%124, %125, %126, %127", "%128, %129")
WGMMA_OF(256, "%128, %129, %130, %131", "%132, %133")
#undef WGMMA_OF
#undef WGMMA_AS
#undef WGMMA_TYPES
#undef WGMMA_SIGNS
#undef F4
#endif

// sum += a * b for the bytes of a product; b is a descriptor's lower word.
template <int N>
__device__ __forceinline__ void wgmma_step(float* sum, const Fragment& a, unsigned b) {
    if constexpr (BF16X3) {
        wgmma<N>(sum, a.words[PLANES - 1], b);
        wgmma<N>(sum, a.words[0], b + (32 >> 4));
    }
    wgmma<N>(sum, a.words[0], b);
}
