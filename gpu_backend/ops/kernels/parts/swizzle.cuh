// Where 16-byte chunks of rows lie in shared memory, and in packed weights.
#pragma once

// Rows of 32, 64 or 128 bytes lie side by side. The swizzle of their 16-byte chunks puts chunks of eight rows that are read together
// into eight different groups of banks. These are the 32-, 64- and 128-byte swizzles of wgmma and TMA.
template <int ROW_NBYTES>
__device__ __forceinline__ int swizzled(int chunk, int row) {
    if (ROW_NBYTES == 128) return chunk ^ (row & 7);
    if (ROW_NBYTES == 64) return chunk ^ ((row >> 1) & 3);
    return chunk ^ ((row >> 2) & 1);
}
