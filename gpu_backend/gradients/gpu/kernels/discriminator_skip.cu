// The 1 x 1 convolution of a discriminator's skip, or its adjoint, by Hopper's wgmma:
//
//     out[pixel][o] = unit * sum over channels c of  x[pixel][c] W[o][c]      fp16, pixels of all samples
//
// A warpgroup computes tile after tile of 64 pixels, apart from the others. The weights of a block's COLUMNS channels stay in shared memory; groups of 64 input
// channels of pixels follow each other through a ring of each warpgroup, whatever tile they belong to.
//
//     | weights, groups x COLUMNS x 64 channels | each warpgroup: STAGES of 64 pixels x 64 channels |
//
// Rows of weights are those of channels in an order in which a thread's sums are of eight neighbouring channels.
//
// Macro COLUMNS: 128, 64 or 32. Grid: blocks that share the pixels, tiles of channels.
#define HALF 1
#define DEPTH 64
#define USE_WGMMA 1
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/bulk_store.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    GROUPS = 4,  // warpgroups
    THREADS = 128 * GROUPS,
    PIXELS = 64,
    STAGES = 4,
    CHUNKS = ROW_NBYTES / 16,
    WEIGHT_NBYTES = COLUMNS * ROW_NBYTES,  // of a group of input channels
    STAGE_NBYTES = PIXELS * ROW_NBYTES,
    OCTETS = COLUMNS / 32,  // of channels of a pixel that a thread has
};

__shared__ __align__(8) unsigned long long barriers[GROUPS][STAGES];

extern "C" __global__ void __launch_bounds__(THREADS, 1) discriminator_skip(
    const __grid_constant__ TensorMap x_map, const half_bits* __restrict__ weight, half_bits* __restrict__ out, int pixels, int cin, int cout,
    float unit) {
    extern __shared__ unsigned char unaligned[];
    const unsigned weights = opaque((shared_address(unaligned) + 1023u) & ~1023u);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, group = threadIdx.x >> 7;
    const int depths = (cin + DEPTH - 1) / DEPTH, tiles = (pixels + PIXELS - 1) / PIXELS, first_channel = blockIdx.y * COLUMNS;
    const unsigned ring = weights + depths * WEIGHT_NBYTES + group * STAGES * STAGE_NBYTES;
    const bool is_first = threadIdx.x % 128 == 0;  // of a warpgroup: issues its copies
    const int first_tile = blockIdx.x * GROUPS + group, stride = gridDim.x * GROUPS;

    int next_tile = first_tile, next_depth = 0;  // of the copy that follows
    auto load_next = [&](int stage) {
        if (next_tile >= tiles) return;
        const unsigned barrier = shared_address(barriers[group] + stage);
        expect_bytes(barrier, STAGE_NBYTES);
        tma_load(ring + stage * STAGE_NBYTES, &x_map, next_depth * DEPTH, next_tile * PIXELS, 0, 0, barrier);
        if (++next_depth == depths) next_depth = 0, next_tile += stride;
    };
    // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll 4
    for (int i = threadIdx.x; i < depths * COLUMNS * CHUNKS; i += THREADS) {
        const int chunk = i % CHUNKS, row = i / CHUNKS % COLUMNS, depth = i / CHUNKS / COLUMNS;
        const int channel = first_channel + (row & ~31 | (row >> 1 & 3) << 3 | (row >> 3 & 3) << 1 | row & 1), input = depth * DEPTH + chunk * 8;
        const bool is_there = channel < cout && input < cin;
        copy_async(
            weights + depth * WEIGHT_NBYTES + row * ROW_NBYTES + swizzle(chunk, row) * 16, weight + (is_there ? (size_t)channel * cin + input : 0), is_there);
    }
    commit_copies();
    if (is_first) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) init_barrier(shared_address(barriers[group] + i), 1);
        fence_barrier_init();
    }
    wait_for_previous_kernel();
    if (is_first)
#pragma unroll 1
        for (int i = 0; i < STAGES; ++i) load_next(i);
    wait_copies<0>();
    fence_async_proxy();  // wgmma reads the weights
    __syncthreads();      // they and the barriers are there

    const int row = warp * 16 + (lane & 15);
    const unsigned matrix = matrix_descriptor(weights);
    int stage = 0;
    unsigned phase = 0;
    for (int tile = first_tile; tile < tiles; tile += stride) {
        float sum[COLUMNS / 2] = {};
        wgmma_fence_sums(sum);  // zeros are written here, and not between products
#pragma unroll 1
        for (int depth = 0; depth < depths; ++depth) {
            wait_barrier(shared_address(barriers[group] + stage), phase);
            __syncwarp();
            unsigned a[PRODUCTS][4];
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) ldmatrix_x4(a[k], ring + stage * STAGE_NBYTES + row * ROW_NBYTES + swizzle(2 * k + (lane >> 4), row) * 16);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) wgmma<COLUMNS>(sum, a[k], matrix + depth * (WEIGHT_NBYTES >> 4) + 2 * k);
            wgmma_commit();
            // The pixels are in registers: all warps have left the stage.
            asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
            if (is_first) load_next(stage);
            __syncwarp();
            wgmma_wait<0>();
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        wgmma_fence_sums(sum);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pixel = tile * PIXELS + warp * 16 + half * 8 + (lane >> 2);
            if (pixel >= pixels) continue;
#pragma unroll
            for (int octet = 0; octet < OCTETS; ++octet) {
                const int channel = first_channel + octet * 32 + (lane & 3) * 8;
                if (channel >= cout) continue;
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] = unit * sum[(octet * 4 + i / 2) * 4 + 2 * half + i % 2];
                store_many(out + (size_t)pixel * cout + channel, v);
            }
        }
    }
}
