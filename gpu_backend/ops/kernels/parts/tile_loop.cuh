// The persistent tile loop of the two fused convolutions. A block goes down a column tile of the picture, row tile by row tile, and in
// each row tile through the input channels, DEPTH a pipeline step. Meanwhile the activations and weights of the next steps are copied
// to the stages in shared memory, across the end of a row tile too. With WEIGHTS_IN_SMEM the weights of all steps are copied once and stay.
//
// Macros: DEPTH CHANNELS STAGES WEIGHTS_IN_SMEM SPLIT_K USE_WGMMA. USE_TMA: one thread issues the copies, by TMA; otherwise every
// thread copies its part by cp.async. DECOUPLED, with USE_TMA: warps wait for stages, not for each other, so that some multiply while
// others wait. It pays in large blocks that have a multiprocessor for themselves; elsewhere a barrier of the block costs less.
// Constants of the kernel: THREADS, KERNEL_TAPS; PATCH_ROWS x PATCH_COLUMNS pixels that a row tile needs, in rows of PITCH pixels; BEFORE,
// how many rows and columns the patch begins before the row tile.
#pragma once
#include "parts/tensor_core.cuh"
#include "parts/wgmma.cuh"
#include "parts/registers.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"

static_assert(USE_TMA || !USE_WGMMA, "wgmma reads shared memory through the async proxy: without TMA, copies would need a proxy fence");
static_assert(USE_TMA || !DECOUPLED, "warps that are decoupled wait for the barriers of TMA");

enum : int {
    CHUNK_CHANNELS = 16 / OPERAND_NBYTES,
    CHUNKS = DEPTH / CHUNK_CHANNELS,  // of 16 bytes, in a pixel of the patch
    PATCH_NBYTES = (PATCH_ROWS * PITCH * ROW_NBYTES + 1023) / 1024 * 1024,
    WEIGHT_NBYTES = KERNEL_TAPS * CHANNELS * ROW_NBYTES,  // of one step
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    STAGE_NBYTES = PATCH_NBYTES + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_SPACE),
    AHEAD = STAGES > 1 ? STAGES - 1 : 1,  // steps in flight while one is summed; with one stage none
    ROW_CHUNKS = PATCH_COLUMNS * CHUNKS,
    ROWS_AT_ONCE = THREADS / ROW_CHUNKS > 1 ? (THREADS / ROW_CHUNKS > PATCH_ROWS ? PATCH_ROWS : THREADS / ROW_CHUNKS) : 1,
};

struct ColumnTile {
    const X* x;                   // activations of the sample
    const unsigned char* weight;  // of the block's output channels
    int x0, side, cin, first_step, steps;
#if USE_TMA  // a declaration: members that nothing reads would change the machine code of other architectures
    const TensorMap* map;  // of x
    int sample;
#endif
};

// A stage is full when its copies have come. The last barrier is that of the weights, if they stay in shared memory.
__shared__ __align__(8) unsigned long long full_barriers[STAGES + 1];
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
// With DECOUPLED, a stage is empty when every warp has read it.
__shared__ __align__(8) unsigned long long empty_barriers[STAGES];
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }

// Copies by TMA, which one thread issues. Padding from PATCH_COLUMNS to PITCH is copied too.
__device__ __forceinline__ void tma_load_weights(unsigned target, const ColumnTile& column_tile, int step, unsigned barrier) {
    bulk_load(target, column_tile.weight + static_cast<long long>(step) * WEIGHT_NBYTES, WEIGHT_NBYTES, barrier);
}

template <typename Tile>  // a ColumnTile, which has no map without USE_TMA
__device__ __forceinline__ void tma_load_patch(unsigned target, const Tile& column_tile, int step, int y0, unsigned barrier) {
    tma_load(target, column_tile.map, step * DEPTH, column_tile.x0 - BEFORE, y0 - BEFORE, column_tile.sample, barrier);
}

// Copies by cp.async, of which every thread issues its part.
__device__ __forceinline__ void copy_weights(unsigned target, const ColumnTile& column_tile, int step) {
    const unsigned char* source = column_tile.weight + static_cast<long long>(step) * WEIGHT_NBYTES;
#pragma unroll
    for (int i = 0; i < (WEIGHT_NBYTES / 16 + THREADS - 1) / THREADS; ++i) {
        const int index = i * THREADS + threadIdx.x;
        if (WEIGHT_NBYTES / 16 % THREADS == 0 || index < WEIGHT_NBYTES / 16) copy_async(target + index * 16, source + index * 16, true);
    }
}

// A thread copies one chunk of one column in every ROWS_AT_ONCE-th row: little to compute, little to keep in registers. Pixels outside of
// the picture become zeros.
__device__ __forceinline__ void copy_patch(unsigned target, const ColumnTile& column_tile, int step, int y0) {
    const int tid = opaque(threadIdx.x);
#pragma unroll
    for (int turn = 0; turn < (ROW_CHUNKS + THREADS - 1) / THREADS; ++turn) {
        const int item = ROW_CHUNKS > THREADS ? tid + turn * THREADS : tid % ROW_CHUNKS;
        const int first_row = ROW_CHUNKS > THREADS ? 0 : tid / ROW_CHUNKS;
        if (item >= ROW_CHUNKS || first_row >= ROWS_AT_ONCE) continue;
        const int chunk = item % CHUNKS, column = item / CHUNKS;
        const int x = column_tile.x0 + column - BEFORE, channel = step * DEPTH + chunk * CHUNK_CHANNELS;
        const bool is_inside = static_cast<unsigned>(x) < static_cast<unsigned>(column_tile.side) && channel < column_tile.cin;
        int y = y0 + first_row - BEFORE;
        const X* source = column_tile.x + static_cast<long long>(y * column_tile.side + x) * column_tile.cin + channel;
        const int stride = ROWS_AT_ONCE * column_tile.side * column_tile.cin;
        int pixel = first_row * PITCH + column;
#pragma unroll
        for (int i = 0; i < (PATCH_ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE; ++i) {
            const bool wanted = is_inside && static_cast<unsigned>(y) < static_cast<unsigned>(column_tile.side);
            if (PATCH_ROWS % ROWS_AT_ONCE == 0 || first_row + i * ROWS_AT_ONCE < PATCH_ROWS) {
                copy_async(target + pixel * ROW_NBYTES + swizzle(chunk, pixel) * 16, wanted ? source : column_tile.x, wanted);
            }
            source += stride;
            y += ROWS_AT_ONCE;
            pixel += ROWS_AT_ONCE * PITCH;
        }
    }
}

// Loads sixteen positions x the input channels of product k. `pixel` of the patch and `half` are those that this lane addresses.
// With BF16X3 a lane gets channels q, q + 4, q + 8 and q + 12 in lane quarter q, and pairs them in this order, as packed weights are.
__device__ __forceinline__ void load_positions(Fragment& a, unsigned patch, int pixel, int k, int half) {
#pragma unroll
    for (int plane = 0; plane < PLANES; ++plane) {
        ldmatrix_x4(a.words[plane], patch + pixel * ROW_NBYTES + swizzle((k * PLANES + plane) * 2 + half, pixel) * 16);
    }
    if constexpr (BF16X3) {
        const Fragment given = a;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned (&words)[4] = given.words[PLANES / 2 * (i / 2)];
            split_bf16(words[i % 2], words[i % 2 + 2], a.words[0][i], a.words[PLANES - 1][i]);
        }
    }
}

// Loads the weights of sixteen output channels for product k and one tap. `row` and `half` are those that this lane addresses.
__device__ __forceinline__ void load_weights(Fragment& b, unsigned weights, int tap, int row, int k, int half) {
#pragma unroll
    for (int plane = 0; plane < PLANES; ++plane) {
        ldmatrix_x4(b.words[plane], weights + (tap * CHANNELS + row) * ROW_NBYTES + swizzle((k * PLANES + plane) * 2 + half, row) * 16);
    }
}

// Adds sums of a few products to those of all. Tensor cores truncate every sum that they write, so a long chain of products shrinks it by
// more than the products of BF16X3 err. Added up here, short chains are rounded to nearest.
template <int COUNT>
__device__ __forceinline__ void add_chain(float* sum, float* chain) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] += opaque(chain[i]);  // opaque: not before the wait for the products
}

// The pipeline of a block: copies of each step of each row tile fill a stage, in order.
//
//     begin         issues the copies of the first AHEAD steps
//     next_stage    waits for the oldest stage, issues the copies of one more step, returns the address of the stage
//     leave_stage   this warp has read the stage
//     end_steps     after a row tile's last step
struct TileLoop {
    unsigned smem_weights, stages;  // addresses in shared memory
    int row_tile, step, row_tiles, y0, row_tile_rows;  // the step that is copied next; y0: first row of the first row tile
    unsigned oldest;  // the stage that is waited for next
    unsigned phase;

    // All threads call this. With TMA the barriers are there when it returns.
    __device__ __forceinline__ void begin(const ColumnTile& column_tile) {
        if constexpr (USE_TMA) {
            if (threadIdx.x == 0) {
#pragma unroll
                for (int i = 0; i <= STAGES; ++i) init_barrier(full_barrier(i), 1);
                if constexpr (DECOUPLED) {
#pragma unroll
                    for (int i = 0; i < STAGES; ++i) init_barrier(empty_barrier(i), THREADS / 32);
                }
                fence_barrier_init();
            }
        }
        wait_for_previous_kernel();  // of folded weights, too
        if constexpr (USE_TMA) {
            if (threadIdx.x == 0) {
                if constexpr (WEIGHTS_IN_SMEM) {
                    expect_bytes(full_barrier(STAGES), column_tile.steps * WEIGHT_NBYTES);
                    for (int i = 0; i < column_tile.steps; ++i) {
                        tma_load_weights(smem_weights + i * WEIGHT_SPACE, column_tile, column_tile.first_step + i, full_barrier(STAGES));
                    }
                }
            }
            __syncthreads();
        } else if constexpr (WEIGHTS_IN_SMEM) {
            for (int i = 0; i < column_tile.steps; ++i) copy_weights(smem_weights + i * WEIGHT_SPACE, column_tile, column_tile.first_step + i);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) load_next(column_tile, i, 1);
    }

    // Issues the copies of the next step, once its stage is empty: a barrier is past its phase 1 from the beginning.
    __device__ __forceinline__ void load_next(const ColumnTile& column_tile, unsigned slot, unsigned empty_phase) {
        if (row_tile < row_tiles && column_tile.steps > 0) {
            const unsigned stage = stages + slot * STAGE_NBYTES;
            const int from = column_tile.first_step + step, row = y0 + row_tile * row_tile_rows;
            if constexpr (USE_TMA) {
                if (threadIdx.x == 0) {
                    if constexpr (DECOUPLED) wait_barrier(empty_barrier(slot), empty_phase);
                    expect_bytes(full_barrier(slot), PATCH_ROWS * PITCH * ROW_NBYTES + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_NBYTES));
                    if constexpr (!WEIGHTS_IN_SMEM) tma_load_weights(stage + PATCH_NBYTES, column_tile, from, full_barrier(slot));
                    tma_load_patch(stage, column_tile, from, row, full_barrier(slot));
                }
            } else {
                if constexpr (!WEIGHTS_IN_SMEM) copy_weights(stage + PATCH_NBYTES, column_tile, from);
                copy_patch(stage, column_tile, from, row);
            }
            if (++step == column_tile.steps) {
                step = 0;
                ++row_tile;
            }
        }
        if constexpr (!USE_TMA) commit_copies();
    }

    // Waits for the oldest stage and returns its address. The copies of one more step go to the stage that was left last: not before all
    // warps have left it, which the barrier of the block tells, or with DECOUPLED that of the stage.
    __device__ __forceinline__ unsigned next_stage(const ColumnTile& column_tile, bool is_first) {
        if constexpr (STAGES == 1) {
            if (!is_first) {
                __syncthreads();
                load_next(column_tile, 0, 1);
            }
        } else if constexpr (DECOUPLED) {
            load_next(column_tile, left(), oldest == 0 ? phase ^ 1 : phase);
        }
        if constexpr (USE_TMA) {
            if (WEIGHTS_IN_SMEM && is_first) wait_barrier(full_barrier(STAGES), 0);
            wait_barrier(full_barrier(oldest), phase);
        } else {
            wait_copies<STAGES == 1 ? 0 : AHEAD - 1>();
        }
        unsigned stage;
        if constexpr (DECOUPLED) {
            __syncwarp();
            stage = warp_uniform(stages + oldest * STAGE_NBYTES);
        } else {
            __syncthreads();
            if constexpr (STAGES > 1) load_next(column_tile, left(), 1);
            stage = stages + oldest * STAGE_NBYTES;
        }
        if (++oldest == STAGES) {
            oldest = 0;
            phase ^= 1;
        }
        return stage;
    }

    // The stage before the oldest.
    __device__ __forceinline__ unsigned left() const { return oldest == 0 ? STAGES - 1 : oldest - 1; }

    // Address of a step's weights, with WEIGHTS_IN_SMEM.
    __device__ __forceinline__ unsigned weights_of_step(int step) const {
        const unsigned address = smem_weights + step * WEIGHT_SPACE;
        if constexpr (DECOUPLED) return warp_uniform(address);
        return address;
    }

    // The warp has read the stage that `next_stage` returned last.
    __device__ __forceinline__ void leave_stage() {
        if constexpr (DECOUPLED) {
            __syncwarp();
            if (threadIdx.x % 32 == 0) arrive(empty_barrier(left()));
        }
    }

    // After a row tile's last step: until here, every warp has written what others read next, and read what they overwrite.
    __device__ __forceinline__ void end_steps(const ColumnTile& column_tile) {
        if (DECOUPLED || column_tile.steps == 0) __syncthreads();
    }
};

// Split-K: adds up the sums of all slices of a tile, always in the same order. Only the block that finishes last has them; the others
// get false. `workspace` holds COUNT x THREADS sums a slice, `counters` a word a tile, which is 0 again afterwards. All threads call this.
__shared__ bool is_last;
template <int COUNT>
__device__ __forceinline__ bool reduce_slices(float* sum, float* workspace, unsigned* counters, int tile, int slice) {
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
