// A filter of TAPS x TAPS pixels, of whose results every STEP-th is wanted along both axes. A thread does CHANNELS neighbouring channels of a
// strip: STRIP columns, down a number of rows. A turn reads STEP rows of the input, filters them along their columns, and adds them to the sums of
// the results that they are part of, the first of which is complete then. Rows of the next AHEAD turns are under way meanwhile.
//
// Neighbouring threads do neighbouring channels, then neighbouring strips, so that what two strips read is in the first-level cache. Macros:
// TAPS; STEP, 1 by default; AHEAD. Grid: threads (gpu_backend/gradients/gpu/strips.py).
#pragma once
#include "parts/types.cuh"
#include "parts/registers.cuh"

#ifndef STEP
#define STEP 1
#endif
#define STRIP 2
#define CHANNELS 4
#define STRIP_THREADS 128
// Four blocks of a multiprocessor, which is all that the grid is made for.
#define STRIP_BOUNDS STRIP_THREADS, 4

enum : int {
    WIDTH = STEP * (STRIP - 1) + TAPS,  // columns that a strip reads
    OPEN_SUMS = (TAPS - 1) / STEP,      // rows of results that are not complete after a turn
    ALL_INSIDE = (1 << WIDTH) - 1,
};

struct Strip {
    bool is_there;
    int channel, row, column, rows;
};

// Of a result of side x side pixels, `rows` of them a strip.
__device__ __forceinline__ Strip own_strip(int side, int channels, int rows) {
    const int quads = channels / CHANNELS, strips = (side + STRIP - 1) / STRIP;
    const int index = blockIdx.x * STRIP_THREADS + threadIdx.x, place = index / quads, row = place / strips * rows;
    return {row < side, index % quads * CHANNELS, row, place % strips * STRIP, min(rows, side - row)};
}

// CHANNELS numbers as they are stored.
template <typename X>
struct Stored {
    enum : int { COUNT = CHANNELS * sizeof(X) / 4 };
    unsigned words[COUNT];

    __device__ __forceinline__ void load(const void* from) {
        if constexpr (COUNT == 2) {
            const uint2 q = *static_cast<const uint2*>(from);
            words[0] = q.x, words[1] = q.y;
        } else {
            const uint4 q = *static_cast<const uint4*>(from);
            words[0] = q.x, words[1] = q.y, words[COUNT - 2] = q.z, words[COUNT - 1] = q.w;
        }
    }

    // Volatile, so that a branch around it stays one.
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) asm volatile("mov.b32 %0, 0;" : "=r"(words[i]));
    }

    __device__ __forceinline__ void to_floats(float (&v)[CHANNELS]) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if constexpr (sizeof(X) == 4) v[i] = __uint_as_float(words[i]);
            else from_half2(words[i], v[2 * i], v[2 * i + 1]);
    }
};

// v[s] = sum over r and c of  f[r] f[c] from[first_row + STEP k + r, first_column + STEP s + c]  for each row k of a strip, zeros outside of
// in_side x in_side pixels. `channel`: the first one. Row by row, `fetch(slot)` loads what `finish(slot, v)` needs besides; slot < AHEAD.
template <typename X, typename Fetch, typename Finish>
__device__ __forceinline__ void filter_strip(
    const float (&f)[TAPS], const X* from, int channel, int first_row, int first_column, int in_side, int channels, int rows, Fetch fetch,
    Finish finish) {
    unsigned places[WIDTH];  // in bytes, of which no sample has 2^32
    int inside = 0;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        const int column = first_column + j, safe_column = min(max(column, 0), in_side - 1);
        places[j] = opaque((unsigned)((safe_column * channels + channel) * sizeof(X)));
        if (column == safe_column) inside |= 1 << j;
    }
    inside = opaque(inside);
    const int turns = rows + OPEN_SUMS;
    const unsigned pitch = in_side * channels * (unsigned)sizeof(X);
    Stored<X> ahead[AHEAD][STEP][WIDTH];
    // No branch around a load, so that many are under way together: where no rows follow, the last ones are loaded again.
    const auto load = [&](int slot, int turn) {
#pragma unroll
        for (int e = 0; e < STEP; ++e) {
            const unsigned row = min(max(first_row + STEP * min(turn, turns - 1) + e, 0), in_side - 1) * pitch;
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) ahead[slot][e][j].load(reinterpret_cast<const char*>(from) + (row + places[j]));
        }
    };
    float sums[OPEN_SUMS + 1][STRIP][CHANNELS] = {};  // the last ones stay zeros
#pragma unroll
    for (int slot = 0; slot < AHEAD; ++slot) {
        load(slot, slot);
        if (slot >= OPEN_SUMS && slot < turns) fetch(slot);
    }
#pragma unroll 1
    for (int first_turn = 0; first_turn < turns; first_turn += AHEAD) {
#pragma unroll
        for (int slot = 0; slot < AHEAD; ++slot) {
            const int turn = first_turn + slot;
            float along[STEP][STRIP][CHANNELS] = {};
#pragma unroll
            for (int e = 0; e < STEP; ++e) {
                const bool is_row = (unsigned)(first_row + STEP * turn + e) < (unsigned)in_side;
                const int is_used = is_row ? inside : 0;
                if (is_used != ALL_INSIDE) {
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j)
                        if (!(is_used >> j & 1)) ahead[slot][e][j].clear();
                }
#pragma unroll
                for (int j = 0; j < WIDTH; ++j) {
                    float q[CHANNELS];
                    ahead[slot][e][j].to_floats(q);
#pragma unroll
                    for (int s = 0; s < STRIP; ++s)
                        if (j - STEP * s >= 0 && j - STEP * s < TAPS)
#pragma unroll
                            for (int i = 0; i < CHANNELS; ++i)
                                along[e][s][i] = j == STEP * s ? f[0] * q[i] : fmaf(f[j - STEP * s], q[i], along[e][s][i]);
                }
            }
            load(slot, turn + AHEAD);
            float v[STRIP][CHANNELS];
#pragma unroll
            for (int k = 0; k <= OPEN_SUMS; ++k)
#pragma unroll
                for (int s = 0; s < STRIP; ++s)
#pragma unroll
                    for (int i = 0; i < CHANNELS; ++i) {
                        float sum = sums[k][s][i];
#pragma unroll
                        for (int e = 0; e < STEP; ++e) {
                            const int tap = STEP * (OPEN_SUMS - k) + e;
                            if (tap < TAPS) sum = fmaf(f[tap], along[e][s][i], sum);
                        }
                        (k ? sums[k - 1][s][i] : v[s][i]) = sum;
                    }
            if (turn >= OPEN_SUMS && turn < turns) finish(slot, v);
            if (turn + AHEAD >= OPEN_SUMS && turn + AHEAD < turns) fetch(slot);
        }
    }
}
