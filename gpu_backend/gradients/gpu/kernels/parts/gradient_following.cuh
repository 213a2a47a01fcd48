// The weights of the convolution after this one: they come from memory to the second-level cache meanwhile. Small layers leave memory idle, and
// would each begin with a wait for it.
#pragma once
#include "parts/types.cuh"

#define FOLLOWING_PARAMETERS const half_bits* __restrict__ following, int following_nbytes

// Asks for this block's share. One thread calls it.
__device__ __forceinline__ void fetch_following(const half_bits* following, int nbytes) {
    const int blocks = gridDim.x * gridDim.y * gridDim.z, block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int share = (nbytes / blocks + 128) / 128 * 128, first = block * share, own = min(share, nbytes - first);
    if (own > 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(reinterpret_cast<const char*>(following) + first), "r"(own) : "memory");
}
