// The adjoint of a transposed convolution with stride 2, from 32 channels to up to 64, by Hopper's wgmma: the formula of gradient_up_adjoint, whose sums
// go on as fp16 results (parts/discriminator_end.cuh).
//
// A warpgroup computes tile after tile of 4 x 16 pixels, apart from the others. The weights of all taps stay in shared memory, the pixels of the tile after
// next are copied there while products run. Rows of t lie in memory as pairs of pixels, of 128 bytes each; of the last pair, the second pixel is read as well,
// beyond the array after the last row, and not used.
//
//     | weights, 9 taps x 64 x 32 channels | each warpgroup: t of even tiles, 9 x 17 pairs of pixels; of odd tiles |
//
// Rows of weights are those of channels in an order in which a thread's sums are of eight neighbouring channels.
//
// Grid: blocks of a device. Tiles are those of all samples, `tiles` each, `across` in a row.
#define HALF 1
#define DEPTH 32
#define USE_WGMMA 1
#define ACTIVATION 0
#define TAPS 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/bulk_store.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_end.cuh"

enum : int {
    GROUPS = 4,  // warpgroups
    THREADS = 128 * GROUPS,
    COLUMNS = 64,
    KERNEL = 3,
    TILE_ROWS = 4,  // one of each warp
    TILE_COLUMNS = 16,
    PITCH = TILE_COLUMNS + 1,
    PAIR_NBYTES = 2 * ROW_NBYTES,
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    WEIGHT_NBYTES = KERNEL * KERNEL * TAP_NBYTES,
    CHUNKS = ROW_NBYTES / 16,
    PATCH_NBYTES = (2 * TILE_ROWS + 1) * PITCH * PAIR_NBYTES,
    PATCH_SPACE = (PATCH_NBYTES + 1023) / 1024 * 1024,
    OCTETS = COLUMNS / 32,  // of channels of a pixel that a thread has
};

__shared__ __align__(8) unsigned long long barriers[GROUPS][2];

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient_narrow_up_adjoint(
    const __grid_constant__ TensorMap x_map, const half_bits* __restrict__ weight, DISCRIMINATOR_END_PARAMETERS, int side, int cout, int across, int tiles,
    int all_tiles) {
    extern __shared__ unsigned char unaligned[];
    const unsigned weights = opaque((shared_address(unaligned) + 1023u) & ~1023u);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, group = threadIdx.x >> 7;
    const unsigned patches = weights + WEIGHT_NBYTES + group * 2 * PATCH_SPACE;
    const bool is_first = threadIdx.x % 128 == 0;  // of a warpgroup: issues its copies
    const int first_tile = blockIdx.x * GROUPS + group, step = gridDim.x * GROUPS;

    auto load_patch = [&](int tile, int buffer) {
        if (tile >= all_tiles) return;
        const unsigned barrier = shared_address(barriers[group] + buffer);
        const int sample = tile / tiles, row = tile % tiles / across, column = tile % tiles % across;
        expect_bytes(barrier, PATCH_NBYTES);
        tma_load(patches + buffer * PATCH_SPACE, &x_map, 0, column * TILE_COLUMNS, 2 * row * TILE_ROWS, sample, barrier);
    };
    // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll 1
    for (int i = threadIdx.x; i < WEIGHT_NBYTES / 16; i += THREADS) {
        const int chunk = i % CHUNKS, row = i / CHUNKS % COLUMNS, tap = i / CHUNKS / COLUMNS;
        const int channel = row & ~31 | (row >> 1 & 3) << 3 | (row >> 3 & 3) << 1 | row & 1;
        const bool is_there = channel < cout;
        copy_async(
            weights + tap * TAP_NBYTES + row * ROW_NBYTES + swizzle(chunk, row) * 16,
            weight + (size_t)(tap * cout + (is_there ? channel : 0)) * DEPTH + chunk * 8, is_there);
    }
    commit_copies();
    if (is_first) {
#pragma unroll
        for (int i = 0; i < 2; ++i) init_barrier(shared_address(barriers[group] + i), 1);
        fence_barrier_init();
    }
    wait_for_previous_kernel();
    if (is_first) load_patch(first_tile, 0), load_patch(first_tile + step, 1);
    wait_copies<0>();
    fence_async_proxy();  // wgmma reads the weights
    __syncthreads();      // they and the barriers are there

    const int corner = 2 * warp * PITCH + (lane & 15);
    const unsigned matrix = matrix_descriptor(weights);
    int buffer = 0;
    unsigned phase = 0;
    for (int tile = first_tile; tile < all_tiles; tile += step) {
        const unsigned patch = patches + buffer * PATCH_SPACE;
        wait_barrier(shared_address(barriers[group] + buffer), phase);
        __syncwarp();
        float sum[COLUMNS / 2] = {};
        wgmma_fence_sums(sum);  // zeros are written here, and not between products
        unsigned a[2][KERNEL][PRODUCTS][4];
#pragma unroll
        for (int y = 0; y < KERNEL; ++y) {
#pragma unroll
            for (int x = 0; x < KERNEL; ++x)
#pragma unroll
                for (int k = 0; k < PRODUCTS; ++k) {
                    const int pair = corner + y * PITCH + x / 2;
                    ldmatrix_x4(a[y & 1][x][k], patch + pair * PAIR_NBYTES + swizzled<PAIR_NBYTES>(x % 2 * CHUNKS + 2 * k + (lane >> 4), pair) * 16);
                }
            wgmma_fence();
#pragma unroll
            for (int x = 0; x < KERNEL; ++x)
#pragma unroll
                for (int k = 0; k < PRODUCTS; ++k) wgmma<COLUMNS>(sum, a[y & 1][x][k], matrix + (KERNEL * y + x) * (TAP_NBYTES >> 4) + 2 * k);
            wgmma_commit();
            wgmma_wait<1>();
        }
        // The last rows of pixels are in registers: all warps have left the patch.
        asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
        if (is_first) load_patch(tile + 2 * step, buffer);
        wgmma_wait<0>();
        wgmma_fence_sums(sum);
        const int sample = tile / tiles, y = tile % tiles / across * TILE_ROWS + warp;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int x = tile % tiles % across * TILE_COLUMNS + half * 8 + (lane >> 2);
            if (y >= side || x >= side) continue;
#pragma unroll
            for (int octet = 0; octet < OCTETS; ++octet) {
                const int channel = octet * 32 + (lane & 3) * 8;
                if (channel >= cout) continue;
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] = sum[(octet * 4 + i / 2) * 4 + 2 * half + i % 2];
                end_channels(v, sample, y, x, side, channel, cout, DISCRIMINATOR_END_ARGUMENTS);
            }
        }
        buffer ^= 1, phase ^= buffer == 0;
    }
}
