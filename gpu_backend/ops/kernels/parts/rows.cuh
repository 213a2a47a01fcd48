// Products of a table's rows with BATCH vectors in shared memory. A warp takes ROWS rows at a time, a lane whole 16-byte
// groups of them. Every weight is loaded once and used for all vectors.
//     HALF     1: the table is fp16, a group is 8 columns; 0: fp32, 4 columns
//     ROWS     1, 2 or 4        BATCH   1, 2, 4 or 8        ROWS * BATCH <= 32        THREADS   of a block
// A row takes whole groups; its padding holds zeros.
#pragma once
#include "parts/types.cuh"

enum : int {
    GROUP = HALF ? 8 : 4,  // columns
    SUMS = ROWS * BATCH,
    // 16-byte loads in flight per lane and row: eight per lane, four where the sums take the registers.
    CHUNKS = (SUMS > 16 ? 4 : 8) / ROWS,
};

// Loads 16 bytes that are read once, without a place in L1; zeros without a load if `wanted` is false. Volatile, so that the
// compiler does not move it behind a wait.
__device__ __forceinline__ uint4 load_once(const uint4* from, bool wanted) {
    uint4 v;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %5, 0;\n"
        "mov.b32 %0, 0;\n"
        "mov.b32 %1, 0;\n"
        "mov.b32 %2, 0;\n"
        "mov.b32 %3, 0;\n"
        "@p ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];\n"
        "}"
        : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
        : "l"(from), "r"((int)wanted));
    return v;
}

// Groups first + lane, first + lane + 32 ... of ROWS rows of `groups` groups each.
__device__ __forceinline__ void load_rows(
    const uint4* rows, int groups, int first, bool wanted, uint4 (&words)[ROWS][CHUNKS]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int group = first + 32 * c + lane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            words[r][c] = load_once(rows + (size_t)r * groups + group, wanted && group < groups);
    }
}

// Index of a vector's column in shared memory. Of the 8 columns of a group, 4 lie in each of two planes, so that the 16-byte
// reads of neighbouring lanes have no bank conflicts.
__device__ __forceinline__ int place_of(int column, int groups) {
    if constexpr (HALF) return ((column >> 3) << 2) + (column & 3) + ((column & 4) ? 4 * groups : 0);
    else return column;
}

// Copies BATCH vectors to shared memory, with zeros for missing columns and samples, and raises `peak` to the largest magnitudes
// that this thread copied, as bits: bits of magnitudes compare like numbers, and NaN is the largest.
__device__ __forceinline__ void stage_vectors(
    const float* source, int stride, int samples, int columns, int groups, float* vectors, unsigned (&peak)[BATCH]) {
    const int padded = groups * GROUP;
#pragma unroll 1
    for (int first = threadIdx.x; first < padded; first += 2 * THREADS) {
        float v[2][BATCH];
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int column = first + k * THREADS;
                v[k][b] = b < samples && column < columns ? source[(size_t)b * stride + column] : 0.0f;
            }
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int column = first + k * THREADS;
                if (column < padded) vectors[b * padded + place_of(column, groups)] = v[k][b];
                const unsigned bits = __float_as_uint(v[k][b]) & 0x7fffffffu;
                peak[b] = bits > peak[b] ? bits : peak[b];
            }
    }
}

// sums[b * ROWS + r] += row r . vector b over the loaded groups; SQUARED: of the vector's squares.
template <bool SQUARED>
__device__ __forceinline__ void add_products(
    const float* vectors, int groups, int first, const uint4 (&words)[ROWS][CHUNKS], float (&sums)[SUMS]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int group = first + 32 * c + lane;
        if (group >= groups) continue;
#pragma unroll(SUMS > 16 ? 1 : 2)
        for (int k = 0; k < GROUP; k += 4) {
            float weights[ROWS][4];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const uint4 w = words[r][c];
                if constexpr (HALF) {
                    from_half2(k == 0 ? w.x : w.z, weights[r][0], weights[r][1]);
                    from_half2(k == 0 ? w.y : w.w, weights[r][2], weights[r][3]);
                } else {
                    weights[r][0] = __uint_as_float(w.x), weights[r][1] = __uint_as_float(w.y);
                    weights[r][2] = __uint_as_float(w.z), weights[r][3] = __uint_as_float(w.w);
                }
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                float v[4];
                load_many(vectors + b * groups * GROUP + k * groups + 4 * group, v);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (SQUARED) v[i] *= v[i];
#pragma unroll
                    for (int r = 0; r < ROWS; ++r)
                        sums[b * ROWS + r] = fmaf(weights[r][i], v[i], sums[b * ROWS + r]);
                }
            }
        }
    }
}

// The whole product: of the groups in `words` (0 to 32 * CHUNKS - 1), then of the rest of long rows.
template <bool SQUARED>
__device__ __forceinline__ void add_row_products(
    const float* vectors, const uint4* rows, int groups, bool wanted, uint4 (&words)[ROWS][CHUNKS],
    float (&sums)[SUMS]) {
    add_products<SQUARED>(vectors, groups, 0, words, sums);
#pragma unroll 1
    for (int first = 32 * CHUNKS; first < groups; first += 32 * CHUNKS) {
        load_rows(rows, groups, first, wanted, words);
        add_products<SQUARED>(vectors, groups, first, words, sums);
    }
}

// Halves the number of sums per lane until one is left. A template, so that indices are constants.
template <int COUNT>
__device__ __forceinline__ void halve(float (&sums)[SUMS]) {
    if constexpr (COUNT > 0) {
        const bool upper = threadIdx.x & COUNT;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const float kept = upper ? sums[i + COUNT] : sums[i];
            const float given = upper ? sums[i] : sums[i + COUNT];
            sums[i] = kept + __shfl_xor_sync(0xffffffffu, given, COUNT);
        }
        halve<COUNT / 2>(sums);
    }
}

// The sum over all lanes of sums[lane % SUMS], always in the same order, for SUMS + log2(32 / SUMS) - 1 shuffles.
__device__ __forceinline__ float total_over_lanes(float (&sums)[SUMS]) {
    halve<SUMS / 2>(sums);
    float total = sums[0];
#pragma unroll
    for (int other = SUMS; other < 32; other <<= 1) total += __shfl_xor_sync(0xffffffffu, total, other);
    return total;
}
