// The tile loop of the two fused convolutions. A block goes down a column of tiles of the picture, row tile by row tile, and in
// each through the input channels step by step. What the next steps need is copied to shared memory meanwhile, across the end
// of a row tile too. With WEIGHTS_IN_SMEM the weights of all steps are copied once and stay.
//
// Macros: DEPTH CHANNELS STAGES WEIGHTS_IN_SMEM THREADS KERNEL_TAPS; PATCH_ROWS PATCH_COLUMNS PITCH of the pixels that a row tile needs,
// BEFORE rows and columns before the row tile's first. USE_TMA: one thread issues copies by the tensor memory accelerator;
// otherwise every thread copies its part. DECOUPLED, with USE_TMA: warps need not keep step, so that some multiply while others wait. It pays
// in large blocks that have a multiprocessor for themselves; elsewhere a barrier of the block costs less.
#pragma once
#if WGMMA && !USE_TMA
#error "wgmma reads shared memory through the async proxy: without TMA, copies would need a proxy fence"
#endif
#include "parts/tensor_core.cuh"
#if USE_TMA
#include "parts/tma.cuh"
#endif

#define CHUNKS (DEPTH / 8)
#define PATCH_NBYTES ((PATCH_ROWS * PITCH * DEPTH * 2 + 1023) / 1024 * 1024)
#define WEIGHT_NBYTES (KERNEL_TAPS * CHANNELS * DEPTH * 2)
#define WEIGHT_SPACE ((WEIGHT_NBYTES + 1023) / 1024 * 1024)
#define STAGE_NBYTES (PATCH_NBYTES + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_SPACE))
#define AHEAD (STAGES > 1 ? STAGES - 1 : 1)  // steps on their way while one is summed; with one stage none

// A gain may be applied before an activation that is homogeneous: once a channel instead of once a number.
#if ACTIVATION <= 2
#define GAIN_AFTER 1.0f
#define GAIN_BEFORE gain
#else
#define GAIN_AFTER gain
#define GAIN_BEFORE 1.0f
#endif

#define ONES 0x3C003C00u

// Two numbers and their noise (a word of two) through activation and clamp. The usual activations are cheap for two numbers of
// 16 bits at a time; the result is stored as such anyway.
__device__ __forceinline__ unsigned activated(float low, float high, unsigned noise, float gain_after, unsigned bound) {
#if ACTIVATION <= 2 && LEVEL >= 800
    return activated2(multiply_add2(to_half2(low, high), ONES, noise), bound);
#else
    float low_noise, high_noise;
    from_half2(noise, low_noise, high_noise);
    const float most = from_half((half_bits)(bound & 0xffffu));
    return to_half2(bounded(activate(low + low_noise) * gain_after, most), bounded(activate(high + high_noise) * gain_after, most));
#endif
}

// The same number, but the compiler does not know: what is computed from it is computed again each time instead of being
// kept in registers from row tile to row tile, where the sums are.
__device__ __forceinline__ int opaque(int value) {
    asm volatile("" : "+r"(value));
    return value;
}

struct ColumnTile {
    const T* x;                // of the sample
    const unsigned char* weight;  // of the block's output channels
    int x0, side, cin, first_step, steps;
#if USE_TMA
    const TensorMap* map;
    int sample;
#endif
};

#if USE_TMA
// A stage is full when its copies have come. The last barrier is that of the weights, if they stay in shared memory.
__shared__ __align__(8) unsigned long long full_barriers[STAGES + 1];
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
#endif
#if DECOUPLED
// A stage is empty when every warp has read it.
__shared__ __align__(8) unsigned long long empty_barriers[STAGES];
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }
#endif

#if USE_TMA
__device__ __forceinline__ void load_weights(unsigned target, const ColumnTile& column_tile, int step, unsigned barrier) {
    bulk_load(target, column_tile.weight + static_cast<long long>(step) * WEIGHT_NBYTES, WEIGHT_NBYTES, barrier);
}

// What lies between the patch and the pitch comes along.
__device__ __forceinline__ void load_patch(unsigned target, const ColumnTile& column_tile, int step, int y0, unsigned barrier) {
    tma_load(target, column_tile.map, step * DEPTH, column_tile.x0 - BEFORE, y0 - BEFORE, column_tile.sample, barrier);
}
#else
__device__ __forceinline__ void load_weights(unsigned target, const ColumnTile& column_tile, int step) {
    const unsigned char* source = column_tile.weight + static_cast<long long>(step) * WEIGHT_NBYTES;
#pragma unroll
    for (int i = 0; i < (WEIGHT_NBYTES / 16 + THREADS - 1) / THREADS; ++i) {
        const int index = i * THREADS + threadIdx.x;
        if (WEIGHT_NBYTES / 16 % THREADS == 0 || index < WEIGHT_NBYTES / 16) copy_async(target + index * 16, source + index * 16, true);
    }
}

// A thread takes one chunk of one column, and of every ROWS_AT_ONCE-th row: little to compute, little to keep in registers.
#define ROW_CHUNKS (PATCH_COLUMNS * CHUNKS)
#define ROWS_AT_ONCE (THREADS / ROW_CHUNKS > 1 ? (THREADS / ROW_CHUNKS > PATCH_ROWS ? PATCH_ROWS : THREADS / ROW_CHUNKS) : 1)
__device__ __forceinline__ void load_patch(unsigned target, const ColumnTile& column_tile, int step, int y0) {
    const int tid = opaque(threadIdx.x);
#pragma unroll
    for (int turn = 0; turn < (ROW_CHUNKS + THREADS - 1) / THREADS; ++turn) {
        const int item = ROW_CHUNKS > THREADS ? tid + turn * THREADS : tid % ROW_CHUNKS;
        const int first_row = ROW_CHUNKS > THREADS ? 0 : tid / ROW_CHUNKS;
        if (item >= ROW_CHUNKS || first_row >= ROWS_AT_ONCE) continue;
        const int chunk = item % CHUNKS, column = item / CHUNKS;
        const int x = column_tile.x0 + column - BEFORE, channel = step * DEPTH + chunk * 8;
        const bool is_inside = static_cast<unsigned>(x) < static_cast<unsigned>(column_tile.side) && channel < column_tile.cin;
        int y = y0 + first_row - BEFORE;
        const T* source = column_tile.x + static_cast<long long>(y * column_tile.side + x) * column_tile.cin + channel;
        const int stride = ROWS_AT_ONCE * column_tile.side * column_tile.cin;
        int pixel = first_row * PITCH + column;
#pragma unroll
        for (int i = 0; i < (PATCH_ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE; ++i) {
            const bool wanted = is_inside && static_cast<unsigned>(y) < static_cast<unsigned>(column_tile.side);
            if (PATCH_ROWS % ROWS_AT_ONCE == 0 || first_row + i * ROWS_AT_ONCE < PATCH_ROWS) {
                copy_async(target + pixel * (DEPTH * 2) + swizzle(chunk, pixel) * 16, wanted ? source : column_tile.x, wanted);
            }
            source += stride;
            y += ROWS_AT_ONCE;
            pixel += ROWS_AT_ONCE * PITCH;
        }
    }
}
#endif

// Sixteen positions by sixteen input channels, for the pixel of the patch that this lane addresses.
__device__ __forceinline__ void load_positions(unsigned (&a)[4], unsigned patch, int pixel, int chunk) {
    ldmatrix_x4(a, patch + pixel * (DEPTH * 2) + swizzle(chunk, pixel) * 16);
}

// The copies of a persistent tile loop, in order; each step of each row tile is one group, which fills a stage.
struct TileLoop {
    unsigned smem_weights, stages;  // in shared memory
    int row_tile, step, row_tiles, y0, row_tile_rows;
    unsigned oldest;  // the stage that is waited for next
    unsigned phase;

    __device__ __forceinline__ void begin(const ColumnTile& column_tile) {
#if USE_TMA
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i <= STAGES; ++i) init_barrier(full_barrier(i), 1);
#if DECOUPLED
#pragma unroll
            for (int i = 0; i < STAGES; ++i) init_barrier(empty_barrier(i), THREADS / 32);
#endif
            fence_barrier_init();
            if (WEIGHTS_IN_SMEM) {
                expect_bytes(full_barrier(STAGES), column_tile.steps * WEIGHT_NBYTES);
                for (int i = 0; i < column_tile.steps; ++i) load_weights(smem_weights + i * WEIGHT_SPACE, column_tile, column_tile.first_step + i, full_barrier(STAGES));
            }
        }
        __syncthreads();
#else
        if (WEIGHTS_IN_SMEM) {
            for (int i = 0; i < column_tile.steps; ++i) load_weights(smem_weights + i * WEIGHT_SPACE, column_tile, column_tile.first_step + i);
        }
#endif
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) load_next(column_tile, i, 1);
    }

    // Asks for the next group, once its stage is empty: a barrier is past its phase 1 from the beginning.
    __device__ __forceinline__ void load_next(const ColumnTile& column_tile, unsigned slot, unsigned empty_phase) {
        if (row_tile < row_tiles && column_tile.steps > 0) {
            const unsigned stage = stages + slot * STAGE_NBYTES;
            const int from = column_tile.first_step + step, row = y0 + row_tile * row_tile_rows;
#if USE_TMA
            if (threadIdx.x == 0) {
#if DECOUPLED
                wait_barrier(empty_barrier(slot), empty_phase);
#endif
                expect_bytes(full_barrier(slot), PATCH_ROWS * PITCH * DEPTH * 2 + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_NBYTES));
                if (!WEIGHTS_IN_SMEM) load_weights(stage + PATCH_NBYTES, column_tile, from, full_barrier(slot));
                load_patch(stage, column_tile, from, row, full_barrier(slot));
            }
#else
            if (!WEIGHTS_IN_SMEM) load_weights(stage + PATCH_NBYTES, column_tile, from);
            load_patch(stage, column_tile, from, row);
#endif
            if (++step == column_tile.steps) {
                step = 0;
                ++row_tile;
            }
        }
#if !USE_TMA
        commit_copies();
#endif
    }

    // Waits until the oldest group is there, and returns where it lies; asks for the next one, into the stage left last.
    __device__ __forceinline__ unsigned next_stage(const ColumnTile& column_tile, bool is_first) {
#if STAGES == 1
        if (!is_first) {
            __syncthreads();
            load_next(column_tile, 0, 1);
        }
#endif
#if DECOUPLED && STAGES > 1
        load_next(column_tile, left(), oldest == 0 ? phase ^ 1 : phase);
#endif
#if USE_TMA
        if (WEIGHTS_IN_SMEM && is_first) wait_barrier(full_barrier(STAGES), 0);
        wait_barrier(full_barrier(oldest), phase);
#else
        wait_copies<STAGES == 1 ? 0 : AHEAD - 1>();
#endif
#if DECOUPLED
        __syncwarp();
        const unsigned stage = warp_uniform(stages + oldest * STAGE_NBYTES);
#else
        __syncthreads();
#if STAGES > 1
        load_next(column_tile, left(), 1);
#endif
        const unsigned stage = stages + oldest * STAGE_NBYTES;
#endif
        if (++oldest == STAGES) {
            oldest = 0;
            phase ^= 1;
        }
        return stage;
    }

    // The stage before the oldest.
    __device__ __forceinline__ unsigned left() const { return oldest == 0 ? STAGES - 1 : oldest - 1; }

    // Where the weights of a step lie, if all stay in shared memory.
    __device__ __forceinline__ unsigned weights_of_step(int step) const {
#if DECOUPLED
        return warp_uniform(smem_weights + step * WEIGHT_SPACE);
#else
        return smem_weights + step * WEIGHT_SPACE;
#endif
    }

    // The warp has read the stage that `next_stage` returned last.
    __device__ __forceinline__ void leave_stage() {
#if DECOUPLED
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(empty_barrier(left()));
#endif
    }

    // After a row tile's last step: what is read or overwritten next, every warp has written or read.
    __device__ __forceinline__ void end_steps(const ColumnTile& column_tile) {
        if (DECOUPLED || column_tile.steps == 0) __syncthreads();
    }
};

// Sums of all split-K slices of a tile, by the block that comes last; false for the others. Always added in the same order.
#if SPLIT_K > 1
template <int COUNT>
__device__ __forceinline__ bool reduce_slices(float* sum, float* workspace, unsigned* counters, int tile, int slice) {
    __shared__ bool is_last;
    const int tid = threadIdx.x;
    float4* const parts = reinterpret_cast<float4*>(workspace) + static_cast<long long>(tile) * SPLIT_K * (COUNT / 4) * THREADS + tid;
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        parts[(slice * (COUNT / 4) + i) * THREADS] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
    }
    __threadfence();
    __syncthreads();
    if (tid == 0) {
        is_last = atomicAdd(counters + tile, 1u) == SPLIT_K - 1;
        if (is_last) counters[tile] = 0;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] = 0.0f;
#pragma unroll(COUNT > 32 ? 1 : 4)
    for (int s = 0; s < SPLIT_K; ++s) {
        float4 part[COUNT / 4];
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) part[i] = __ldcg(parts + (s * (COUNT / 4) + i) * THREADS);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            sum[4 * i] += part[i].x;
            sum[4 * i + 1] += part[i].y;
            sum[4 * i + 2] += part[i].z;
            sum[4 * i + 3] += part[i].w;
        }
    }
    return true;
}
#endif
