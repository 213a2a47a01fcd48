// How a warpgroup goes down a strip of 64 columns of a 3 x 3 convolution, row of the input by row, and keeps the sums of three rows of outputs.
//
// A row of the input is multiplied at once by all three rows of taps: one product of 64 pixels has 3 x CHANNELS columns, of which the first third
// may be the row of outputs that begins, the next the one that ends, and so on: the three thirds take turns. Both factors are read from shared
// memory; the pixels of a column of taps begin one pixel after those of the column before. Warpgroups share nothing but the weights, which stay in
// shared memory, and never wait for each other, so that some multiply while others end a row.
//
// Weights lie in shared memory in the order of the rows of taps 0 2 1 0 2 for each column of taps: three of them in a row are the thirds of a
// product in any of their turns. Output channels are in the order of channel_at, so that a lane holds up to eight neighbours, which it stores at
// once.
//
// Dynamic shared memory, from the first multiple of 1024 bytes on:
//     weights     STEPS x WEIGHT_SPACE
//     a warpgroup's ring of STAGES rows of x: STEPS x PATCH_NBYTES each
//
// Pipeline of a warpgroup, for a row i of its input:
//     copies      | row i + STAGES - 1 -> stage of row i - 1
//     products    | row i                              |
//     ends        | with BESIDE, finish of row i - 3 | take of row i - 2 | without, its finish
//
// Macros: CHANNELS (output channels), DEPTH and STEPS (input channels), WARPGROUPS, STAGES: see StreamingConvGeometry in
// gpu_backend/ops/kernels/streaming_conv_tile.py; PADDING: zeros around the input; HALF and USE_WGMMA are 1.
#pragma once
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma_shared.cuh"
#include "parts/tma.cuh"

enum : int {
    THREADS = 128 * WARPGROUPS,
    STRIP_COLUMNS = 64,
    PATCH_LOADED = (STRIP_COLUMNS + 2) * ROW_NBYTES,
    PATCH_NBYTES = (PATCH_LOADED + 1023) / 1024 * 1024,
    STAGE_NBYTES = STEPS * PATCH_NBYTES,
    TAP_NBYTES = CHANNELS * ROW_NBYTES,
    WEIGHT_NBYTES = 15 * TAP_NBYTES,  // of a step: for each column of taps, those of the rows 0, 2, 1, 0, 2
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    NF = CHANNELS / 8,                        // fragments of eight channels
    STORED_FRAGMENTS = NF % 4 == 0 ? 4 : NF % 2 == 0 ? 2 : 1,  // whose channels a lane stores at once
    CHUNKS = STEPS * PRODUCTS,                // of 32 bytes of a pixel's channels
    STREAMED_NBYTES = STEPS * WEIGHT_SPACE + WARPGROUPS * STAGES * STAGE_NBYTES,
};
static_assert(HALF && USE_WGMMA, "fp16 or e4m3 is multiplied by wgmma");
static_assert(CHANNELS % 8 == 0 && 3 * CHANNELS <= 256, "a product has 256 columns");

// A stage is full when its boxes have come, and empty when every warp of the warpgroup has read it.
__shared__ __align__(8) unsigned long long full_barriers[WARPGROUPS * STAGES], empty_barriers[WARPGROUPS * STAGES];
__device__ __forceinline__ unsigned full_barrier(unsigned number) { return shared_address(full_barriers) + number * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned number) { return shared_address(empty_barriers) + number * 8; }

// By one thread, before fence_barrier_init.
__device__ __forceinline__ void init_row_barriers() {
    for (int i = 0; i < WARPGROUPS * STAGES; ++i) init_barrier(full_barrier(i), 1), init_barrier(empty_barrier(i), 4);
}

// The output channel at a place of the block, as `lane_order` in gpu_backend/cuda/launches/packed_weights.py has it.
__device__ __forceinline__ int channel_at(int place) {
    const int fragment = place / 8;
    return fragment / STORED_FRAGMENTS * (8 * STORED_FRAGMENTS) + (place % 8 / 2 * STORED_FRAGMENTS + fragment % STORED_FRAGMENTS) * 2 + place % 2;
}

// A warpgroup's strip of a picture, and its rows of the input.
struct Strip {
    const TensorMap* map;
    int warpgroup, sample, first_column, first_row, rows;
    unsigned ring;
    bool is_loader;

    // Blocks are the strips of all pictures, `strip_rows` rows of outputs each; `pool` is the address of the weights.
    __device__ __forceinline__ Strip(const TensorMap* map, unsigned pool, int side, int strip_rows)
        : map(map), warpgroup(warp_uniform(threadIdx.x / 128)), sample(blockIdx.z), is_loader(threadIdx.x % 128 == 0) {
        const int strips = (side + STRIP_COLUMNS - 1) / STRIP_COLUMNS, number = static_cast<int>(blockIdx.x) * WARPGROUPS + warpgroup;
        first_column = number % strips * STRIP_COLUMNS, first_row = number / strips * strip_rows;
        rows = min(strip_rows, side - first_row);
        ring = pool + STEPS * WEIGHT_SPACE + warpgroup * (STAGES * STAGE_NBYTES);
    }

    __device__ __forceinline__ void load(int i, int slot) const {
        const unsigned barrier = full_barrier(warpgroup * STAGES + slot), stage = ring + slot * STAGE_NBYTES;
        expect_bytes(barrier, STEPS * PATCH_LOADED);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            tma_load(stage + step * PATCH_NBYTES, map, step * DEPTH, first_column - PADDING, first_row - PADDING + i, sample, barrier);
        }
    }

    // Once barriers are there, and what the kernel before wrote.
    __device__ __forceinline__ void load_first_rows() const {
        if (!is_loader) return;
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            if (i < rows + 2) load(i, i);
        }
    }
};

// Multiplies a strip's rows by the weights at `pool`. begin(row) comes while a row of outputs gets its last products. take(row, sums) gets its sums,
// fragment by fragment: two neighbouring channels of pixel lane / 4 of the warp's sixteen, and two of the pixel eight to the right. It comes for the
// rows -2 and -1, too, which are none. finish(row) does what else a row needs.
template <bool BESIDE, typename Begin, typename Take, typename Finish>
__device__ __forceinline__ void stream_rows(const Strip& strip, unsigned pool, Begin begin, Take take, Finish finish) {
    const int lane = threadIdx.x & 31, first_stage = strip.warpgroup * STAGES;
    const unsigned matrix = matrix_descriptor(pool);
    float sum[3 * NF * 4];
    int slot = 0, phase = 0;

    // Row i of the input; `turn` is i % 3, the sums that row i of outputs has.
    auto row = [&](int i, int turn) {
        wait_barrier(full_barrier(first_stage + slot), phase);
        __syncwarp();
        const unsigned stage = matrix_descriptor(warp_uniform(strip.ring + slot * STAGE_NBYTES));
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < CHUNKS; ++k) {
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                const unsigned a = stage + (k / PRODUCTS * PATCH_NBYTES + dx * ROW_NBYTES + k % PRODUCTS * 32 >> 4);
                const unsigned b = matrix + (k / PRODUCTS * WEIGHT_SPACE + (5 * dx + turn * 2 % 3) * TAP_NBYTES + k % PRODUCTS * 32 >> 4);
                wgmma_shared<3 * CHANNELS>(sum, a, b, 1);
            }
        }
        wgmma_commit();
        if (strip.is_loader && i > 0 && i - 1 + STAGES < strip.rows + 2) {
            const int before = slot == 0 ? STAGES - 1 : slot - 1;
            wait_barrier(empty_barrier(first_stage + before), slot == 0 ? phase ^ 1 : phase);
            strip.load(i - 1 + STAGES, before);
        }
        __syncwarp();
        if (BESIDE && i >= 3) finish(i - 3);
        if (i >= 2) begin(i - 2);
        wgmma_wait<0>();
        wgmma_fence_sums(sum);
        if (lane == 0) arrive(empty_barrier(first_stage + slot));
        float* const ended = sum + (turn + 1) % 3 * (NF * 4);
        take(i - 2, ended);
#pragma unroll
        for (int n = 0; n < NF * 4; ++n) ended[n] = 0.0f;
        if (!BESIDE && i >= 2) finish(i - 2);
        if (++slot == STAGES) slot = 0, phase ^= 1;
    };
#pragma unroll
    for (int i = 0; i < 3 * NF * 4; ++i) sum[i] = 0.0f;
#pragma unroll 1
    for (int i = 0; i < strip.rows + 2; i += 3) {
        row(i, 0);
        if (i + 1 < strip.rows + 2) row(i + 1, 1);
        if (i + 2 < strip.rows + 2) row(i + 2, 2);
    }
    if constexpr (BESIDE) finish(strip.rows - 1);
}
