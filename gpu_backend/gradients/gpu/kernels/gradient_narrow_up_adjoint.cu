// The adjoint of a transposed convolution with stride 2, from 32 channels to up to 64, by Hopper's wgmma: `unit` times the sums of gradient_up_adjoint, as
// fp16. With SKIP it ends a block of a discriminator, whose second convolution it is:
//
//     v = unit * sum + bias,   v where v > 0, else slope * v   its sign -> `mask`,   out = v + skip_unit * sum over channels c of  halved[i, j, c] S[o, c]
//
// A warpgroup computes tile after tile of 4 x 16 pixels, apart from the others. All weights stay in shared memory, the pixels of t of the tile after next are
// copied there while products run. Rows of t lie in memory as pairs of pixels, of 128 bytes each; of the last pair, the second pixel is read as well, beyond
// the array after the last row, and not used.
//
//     | weights, 9 taps x 64 x 32 channels, and S | each warpgroup: t of even tiles, 9 x 17 pairs of pixels; of odd tiles; halved, 4 x 16 pixels |
//
// Rows of weights are those of channels in an order in which a thread's sums are of eight neighbouring channels.
//
// Macro SKIP. Grid: blocks of a device. Tiles are those of all samples, `tiles` each, `across` in a row.
#define HALF 1
#define DEPTH 32
#define USE_WGMMA 1
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/bulk_store.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_signs.cuh"

enum : int {
    GROUPS = 4,  // warpgroups
    THREADS = 128 * GROUPS,
    COLUMNS = 64,
    KERNEL = 3,
    TAPS = KERNEL * KERNEL,
    TILE_ROWS = 4,  // one of each warp
    TILE_COLUMNS = 16,
    PITCH = TILE_COLUMNS + 1,
    PAIR_NBYTES = 2 * ROW_NBYTES,
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    WEIGHT_NBYTES = (TAPS + SKIP) * TAP_NBYTES,
    CHUNKS = ROW_NBYTES / 16,
    PATCH_NBYTES = (2 * TILE_ROWS + 1) * PITCH * PAIR_NBYTES,
    PATCH_SPACE = (PATCH_NBYTES + 1023) / 1024 * 1024,
    HALVED_NBYTES = SKIP * TILE_ROWS * TILE_COLUMNS * ROW_NBYTES,
    GROUP_NBYTES = 2 * PATCH_SPACE + HALVED_NBYTES,
    OCTETS = COLUMNS / 32,  // of channels of a pixel that a thread has
};

__shared__ __align__(8) unsigned long long barriers[GROUPS][2], halved_barriers[GROUPS];

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient_narrow_up_adjoint(
    const __grid_constant__ TensorMap x_map, const half_bits* __restrict__ weight, half_bits* __restrict__ out,
#if SKIP
    const __grid_constant__ TensorMap halved_map, const half_bits* __restrict__ skip_weight, const float* __restrict__ bias,
    signs_byte* __restrict__ mask, float slope, float skip_unit,
#endif
    int side, int cout, int across, int tiles, int all_tiles, float unit) {
    extern __shared__ unsigned char unaligned[];
    const unsigned weights = opaque((shared_address(unaligned) + 1023u) & ~1023u);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, group = threadIdx.x >> 7;
    const unsigned patches = weights + WEIGHT_NBYTES + group * GROUP_NBYTES;
    const bool is_first = threadIdx.x % 128 == 0;  // of a warpgroup: issues its copies
    const int first_tile = blockIdx.x * GROUPS + group, step = gridDim.x * GROUPS;

    auto load_patch = [&](int tile, int buffer) {
        if (tile >= all_tiles) return;
        const unsigned barrier = shared_address(barriers[group] + buffer);
        const int sample = tile / tiles, row = tile % tiles / across, column = tile % tiles % across;
        expect_bytes(barrier, PATCH_NBYTES);
        tma_load(patches + buffer * PATCH_SPACE, &x_map, 0, column * TILE_COLUMNS, 2 * row * TILE_ROWS, sample, barrier);
    };
#if SKIP
    const unsigned halved = patches + 2 * PATCH_SPACE, halved_barrier = shared_address(halved_barriers + group);
    auto load_halved = [&](int tile) {
        if (tile >= all_tiles) return;
        const int sample = tile / tiles, row = tile % tiles / across, column = tile % tiles % across;
        expect_bytes(halved_barrier, HALVED_NBYTES);
        tma_load(halved, &halved_map, 0, column * TILE_COLUMNS, row * TILE_ROWS, sample, halved_barrier);
    };
#endif
    // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll 1
    for (int i = threadIdx.x; i < WEIGHT_NBYTES / 16; i += THREADS) {
        const int chunk = i % CHUNKS, row = i / CHUNKS % COLUMNS, tap = i / CHUNKS / COLUMNS;
        const int channel = row & ~31 | (row >> 1 & 3) << 3 | (row >> 3 & 3) << 1 | row & 1;
        const bool is_there = channel < cout;
        const half_bits* of_tap = weight + (size_t)tap * cout * DEPTH;
#if SKIP
        if (tap == TAPS) of_tap = skip_weight;
#endif
        copy_async(
            weights + tap * TAP_NBYTES + row * ROW_NBYTES + swizzle(chunk, row) * 16, of_tap + (is_there ? channel : 0) * DEPTH + chunk * 8, is_there);
    }
    commit_copies();
    if (is_first) {
#pragma unroll
        for (int i = 0; i < 2; ++i) init_barrier(shared_address(barriers[group] + i), 1);
        init_barrier(shared_address(halved_barriers + group), 1);
        fence_barrier_init();
    }
    wait_for_previous_kernel();
    if (is_first) {
        load_patch(first_tile, 0);
#if SKIP
        load_halved(first_tile);
#endif
        load_patch(first_tile + step, 1);
    }
    wait_copies<0>();
    fence_async_proxy();  // wgmma reads the weights
    __syncthreads();      // they and the barriers are there

    const int corner = 2 * warp * PITCH + (lane & 15);
    const unsigned matrix = matrix_descriptor(weights);
    unsigned number = 0;  // of tiles that are done
    for (int tile = first_tile; tile < all_tiles; tile += step, ++number) {
        const unsigned buffer = number & 1, patch = patches + buffer * PATCH_SPACE;
        wait_barrier(shared_address(barriers[group] + buffer), number >> 1 & 1);
        __syncwarp();
        float sum[COLUMNS / 2] = {};
        wgmma_fence_sums(sum);  // zeros are written here, and not between products
        unsigned a[2][PRODUCTS][4];
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            const int y = tap / KERNEL, x = tap % KERNEL, pair = corner + y * PITCH + x / 2;
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k)
                ldmatrix_x4(a[tap & 1][k], patch + pair * PAIR_NBYTES + swizzled<PAIR_NBYTES>(x % 2 * CHUNKS + 2 * k + (lane >> 4), pair) * 16);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) wgmma<COLUMNS>(sum, a[tap & 1][k], matrix + tap * (TAP_NBYTES >> 4) + 2 * k);
            wgmma_commit();
            wgmma_wait<1>();
        }
#if SKIP
        float skip_sum[COLUMNS / 2] = {};
        wgmma_fence_sums(skip_sum);
        wait_barrier(halved_barrier, number & 1);
        __syncwarp();
        const int pixel = warp * TILE_COLUMNS + (lane & 15);
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k) ldmatrix_x4(a[TAPS & 1][k], halved + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k) wgmma<COLUMNS>(skip_sum, a[TAPS & 1][k], matrix + TAPS * (TAP_NBYTES >> 4) + 2 * k);
        wgmma_commit();
#endif
        // The last pixels are in registers: all warps have left the copies.
        asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
        if (is_first) {
            load_patch(tile + 2 * step, buffer);
#if SKIP
            load_halved(tile + step);
#endif
        }
        wgmma_wait<0>();
        wgmma_fence_sums(sum);
#if SKIP
        wgmma_fence_sums(skip_sum);
#endif
        const int sample = tile / tiles, y = tile % tiles / across * TILE_ROWS + warp;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int x = tile % tiles % across * TILE_COLUMNS + half * 8 + (lane >> 2);
            if (y >= side || x >= side) continue;
#pragma unroll
            for (int octet = 0; octet < OCTETS; ++octet) {
                const int channel = octet * 32 + (lane & 3) * 8;
                if (channel >= cout) continue;
                const size_t place = (((size_t)sample * side + y) * side + x) * cout + channel;
                float v[8];
#if SKIP
                float b[8];
                load_many(bias + channel, b);
#endif
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int which = (octet * 4 + i / 2) * 4 + 2 * half + i % 2;
                    v[i] = unit * sum[which];
#if SKIP
                    v[i] += b[i];
                    v[i] = v[i] > 0.0f ? v[i] : slope * v[i];
#endif
                }
#if SKIP
                mask[place / 8] = signs_of(v);
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] = fmaf(skip_unit, skip_sum[(octet * 4 + i / 2) * 4 + 2 * half + i % 2], v[i]);
#endif
                store_many(out + place, v);
            }
        }
    }
}
