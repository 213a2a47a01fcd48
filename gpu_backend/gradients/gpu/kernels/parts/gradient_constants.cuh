// Loads of what no kernel writes, which a kernel may issue before it waits for the one before it.
#pragma once
#include "parts/types.cuh"

// 16 bytes. Volatile, so that the compiler leaves the load where it is: before the wait.
__device__ __forceinline__ uint4 load_constant(const half_bits* from) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

__device__ __forceinline__ void from_half8(const uint4& words, float (&v)[8]) {
    from_half2(words.x, v[0], v[1]), from_half2(words.y, v[2], v[3]);
    from_half2(words.z, v[4], v[5]), from_half2(words.w, v[6], v[7]);
}
