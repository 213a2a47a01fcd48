// Hopper's wgmma with both factors in shared memory. Macros as in parts/wgmma.cuh, which has the lists of sums.
#pragma once
#include "parts/wgmma.cuh"

// sum (64 x N over four warps, 16 rows each) = a (64 x 32 bytes) * b (32 bytes x N), plus the sum before if `adds`. a, b: the lower words of
// descriptors, see matrix_descriptor.
template <int N>
__device__ __forceinline__ void wgmma_shared(float*, unsigned, unsigned, int) {
    static_assert(N < 0, "there is no wgmma of this width");
}

#if FP8_X
#define WGMMA_SHARED_TYPES "k32.f32.e4m3.e4m3"
#define WGMMA_SHARED_SIGNS "1, 1"
#elif HALF
#define WGMMA_SHARED_TYPES "k16.f32.f16.f16"
#define WGMMA_SHARED_SIGNS "1, 1, 0, 0"  // and neither is transposed
#endif
#define F4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define WGMMA_SHARED(N, A, A_ROWS, B, B_ROWS, ADDS)                                                                                      \
    template <>                                                                                                                          \
    __device__ __forceinline__ void wgmma_shared<N>(float* sum, unsigned a, unsigned b, int adds) {                                      \
        asm volatile("{.reg .b64 first, second; .reg .pred adds; mov.b64 first, {" A ", " A_ROWS "}; mov.b64 second, {" B ", " B_ROWS "}; " \
                     "setp.ne.b32 adds, " ADDS ", 0; wgmma.mma_async.sync.aligned.m64n" #N WGMMA_SHARED_TYPES " {" NAMES_##N "}, "        \
                     "first, second, adds, " WGMMA_SHARED_SIGNS ";}\n"                                                                    \
                     : SUMS_##N                                                                                                          \
                     : "r"(a), "n"(unsigned(DESCRIPTOR_ROWS)), "r"(b), "n"(unsigned(DESCRIPTOR_ROWS)), "r"(adds));                         \
    }
WGMMA_SHARED(16, "%8", "%9", "%10", "%11", "%12")
WGMMA_SHARED(24, "%12", "%13", "%14", "%15", "%16")
WGMMA_SHARED(32, "%16", "%17", "%18", "%19", "%20")
WGMMA_SHARED(40, "%20", "%21", "%22", "%23", "%24")
WGMMA_SHARED(48, "%24", "%25", "%26", "%27", "%28")
WGMMA_SHARED(56, "%28", "%29", "%30", "%31", "%32")
WGMMA_SHARED(64, "%32", "%33", "%34", "%35", "%36")
WGMMA_SHARED(72, "%36", "%37", "%38", "%39", "%40")
WGMMA_SHARED(80, "%40", "%41", "%42", "%43", "%44")
WGMMA_SHARED(88, "%44", "%45", "%46", "%47", "%48")
WGMMA_SHARED(96, "%48", "%49", "%50", "%51", "%52")
WGMMA_SHARED(104, "%52", "%53", "%54", "%55", "%56")
WGMMA_SHARED(112, "%56", "%57", "%58", "%59", "%60")
WGMMA_SHARED(120, "%60", "%61", "%62", "%63", "%64")
WGMMA_SHARED(128, "%64", "%65", "%66", "%67", "%68")
WGMMA_SHARED(136, "%68", "%69", "%70", "%71", "%72")
WGMMA_SHARED(144, "%72", "%73", "%74", "%75", "%76")
WGMMA_SHARED(152, "%76", "%77", "%78", "%79", "%80")
WGMMA_SHARED(160, "%80", "%81", "%82", "%83", "%84")
WGMMA_SHARED(168, "%84", "%85", "%86", "%87", "%88")
WGMMA_SHARED(176, "%88", "%89", "%90", "%91", "%92")
WGMMA_SHARED(184, "%92", "%93", "%94", "%95", "%96")
WGMMA_SHARED(192, "%96", "%97", "%98", "%99", "%100")
WGMMA_SHARED(200, "%100", "%101", "%102", "%103", "%104")
WGMMA_SHARED(208, "%104", "%105", "%106", "%107", "%108")
WGMMA_SHARED(216, "%108", "%109", "%110", "%111", "%112")
WGMMA_SHARED(224, "%112", "%113", "%114", "%115", "%116")
WGMMA_SHARED(232, "%116", "%117", "%118", "%119", "%120")
WGMMA_SHARED(240, "%120", "%121", "%122", "%123", "%124")
WGMMA_SHARED(248, "%124", "%125", "%126", "%127", "%128")
WGMMA_SHARED(256, "%128", "%129", "%130", "%131", "%132")
#undef WGMMA_SHARED
#undef WGMMA_SHARED_TYPES
#undef WGMMA_SHARED_SIGNS
#undef F4
