// A filter of TAPS x TAPS pixels. A thread does four channels of a strip: STRIP_ROWS rows of STRIP pixels. A block has 64 channels of 4 x 4 such
// strips, so that what neighbours read twice is in the first-level cache. Macros: THREADS, 256; TAPS; STRIP_ROWS. Grid: groups of channels, then
// strips of a row, then rows.
#pragma once
#include "parts/types.cuh"

#define STRIP 4
#define QUADS_OF_BLOCK 16
#define STRIPS_OF_BLOCK 4  // along rows, and along columns
// On Turing the compiler keeps room for four blocks of a multiprocessor, and spills. Two of one row a thread have registers enough.
#if LEVEL < 800
#define STRIP_BOUNDS THREADS, STRIP_ROWS == 1 ? 2 : 1
#else
#define STRIP_BOUNDS THREADS
#endif

struct Strip {
    bool is_there;
    int channel, row, column;
};

__device__ __forceinline__ Strip own_strip(int side, int channels) {
    const int quads = channels >> 2, strips = (side + STRIP - 1) / STRIP;
    const int groups = (quads + QUADS_OF_BLOCK - 1) / QUADS_OF_BLOCK, across = (strips + STRIPS_OF_BLOCK - 1) / STRIPS_OF_BLOCK;
    const int index = threadIdx.x, block = blockIdx.x / groups;
    const int quad = blockIdx.x % groups * QUADS_OF_BLOCK + index % QUADS_OF_BLOCK;
    const int strip = block % across * STRIPS_OF_BLOCK + index / QUADS_OF_BLOCK % STRIPS_OF_BLOCK;
    const int row = (block / across * STRIPS_OF_BLOCK + index / (QUADS_OF_BLOCK * STRIPS_OF_BLOCK)) * STRIP_ROWS;
    return {quad < quads && strip < strips && row < side, 4 * quad, row, strip * STRIP};
}

// Four channels of a pixel, or zeros. No branch around the load, so that many are under way together.
__device__ __forceinline__ void load_or_zeros(const float* from, bool is_inside, float (&q)[4]) {
    load_many(from, q);
#pragma unroll
    for (int i = 0; i < 4; ++i) q[i] = is_inside ? q[i] : 0.0f;
}
__device__ __forceinline__ void load_or_zeros(const half_bits* from, bool is_inside, float (&q)[4]) {
    uint2 words = *reinterpret_cast<const uint2*>(from);
    if (!is_inside) words = make_uint2(0, 0);
    from_half2(words.x, q[0], q[1]), from_half2(words.y, q[2], q[3]);
}

// v[k][s] += sum over rows r and columns c of  f[r] f[c] from[first_row + k + r, first_column + s + c], zeros outside of in_side x in_side pixels.
// Along columns first: a thread has fewer rows than columns.
template <typename X>
__device__ __forceinline__ void filter_strip(
    float (&v)[STRIP_ROWS][STRIP][4], const float (&f)[TAPS], const X* from, int first_row, int first_column, int in_side, int channels) {
#pragma unroll
    for (int j = 0; j < STRIP + TAPS - 1; ++j) {
        const int column = first_column + j, safe_column = min(max(column, 0), in_side - 1);
        const bool is_column = (unsigned)column < (unsigned)in_side;
        float along[STRIP_ROWS][4] = {};
#pragma unroll
        for (int r = 0; r < STRIP_ROWS + TAPS - 1; ++r) {
            const int row = first_row + r, safe_row = min(max(row, 0), in_side - 1);
            float q[4];
            load_or_zeros(from + (safe_row * in_side + safe_column) * channels, is_column && (unsigned)row < (unsigned)in_side, q);
#pragma unroll
            for (int k = 0; k < STRIP_ROWS; ++k)
                if (r - k >= 0 && r - k < TAPS)
#pragma unroll
                    for (int i = 0; i < 4; ++i) along[k][i] = fmaf(f[r - k], q[i], along[k][i]);
        }
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            if (j - s >= 0 && j - s < TAPS)
#pragma unroll
                for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
                    for (int i = 0; i < 4; ++i) v[k][s][i] = fmaf(f[j - s], along[k][i], v[k][s][i]);
    }
}
