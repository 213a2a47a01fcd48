// A transposed convolution with stride 2, from `side` to 2 side + 1, from up to 64 channels to 32, by Hopper's wgmma: the formula of gradient_up_conv.
//
// A block computes tile after tile of 9 x 14 positions and their four results, see there. The weights of all taps stay in shared memory, the pixels of the tile
// after next are copied there while products run, and TMA stores the results: rows of t lie in memory as pairs of pixels, of 128 bytes each, and a last pixel,
// which threads store.
//
//     | weights, 9 taps x 32 x 64 channels | x of even tiles, 10 x 15 pixels | x of odd tiles | results, 18 x 14 pairs of pixels |
//
//     copies    | x of tile n + 2, once all warps have left tile n
//     products  | 4 x (four places of x -> registers, 9 wgmma)
//     results   | fp16, once those of tile n - 1 are stored
//
// Grid: blocks of a device. Tiles are those of all samples, `tiles` each, `across` in a row.
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
    THREADS = 256,  // two warpgroups, of 64 positions each
    COLUMNS = 32,
    TAPS = 9,
    PLACES = 4,    // of x that a position needs
    PARITIES = 4,  // of result rows and columns: both even, columns odd, rows odd, both odd
    TILE_ROWS = 9,  // 126 of 128 positions; of 513 x 513 they make 15.98 tiles for each of 132 multiprocessors
    TILE_COLUMNS = 14,
    POSITIONS = TILE_ROWS * TILE_COLUMNS,
    PITCH = TILE_COLUMNS + 1,
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    PATCH_NBYTES = (TILE_ROWS + 1) * PITCH * ROW_NBYTES,
    PATCH_SPACE = (PATCH_NBYTES + 1023) / 1024 * 1024,
    PATCHES = TAPS * TAP_NBYTES,
    RESULTS = PATCHES + 2 * PATCH_SPACE,
    PIECES = COLUMNS / 8,  // of a result, 16 bytes each
};

// Of a tap: the parity of its results, and the place of x: 0, (i, j); 1, a column back; 2, a row back; 3, both.
__device__ constexpr int parity_of(int tap) { return (tap / 3 & 1) * 2 + (tap % 3 & 1); }
__device__ constexpr int place_of(int tap) { return tap / 3 / 2 * 2 + tap % 3 / 2; }

// Copies a box of the size in the map to an array; what is outside of it is left out.
__device__ __forceinline__ void tma_store(const TensorMap* map, unsigned source, int channel, int column, int row, int picture) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(channel), "r"(column), "r"(row),
                 "r"(picture), "r"(source)
                 : "memory");
}

__shared__ __align__(8) unsigned long long weight_barrier, patch_barriers[2];

extern "C" __global__ void __launch_bounds__(THREADS, 2) gradient_narrow_up_conv(
    const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap t_map,
    const float* __restrict__ demod, half_bits* __restrict__ t, int side, int across, int tiles, int all_tiles, int demod_count, float unit) {
    extern __shared__ unsigned char unaligned[];
    const unsigned weights = opaque((shared_address(unaligned) + 1023u) & ~1023u), results = weights + RESULTS;
    const int whole = 2 * side + 1;

    // The first thread issues all copies.
    auto load_patch = [&](int tile, int buffer) {
        if (tile >= all_tiles) return;
        const unsigned barrier = shared_address(patch_barriers + buffer);
        const int sample = tile / tiles, row = tile % tiles / across, column = tile % tiles % across;
        expect_bytes(barrier, PATCH_NBYTES);
        tma_load(weights + PATCHES + buffer * PATCH_SPACE, &x_map, 0, column * TILE_COLUMNS - 1, row * TILE_ROWS - 1, sample, barrier);
    };
    if (threadIdx.x == 0) {
        const unsigned barrier = shared_address(&weight_barrier);
        init_barrier(barrier, 1);
#pragma unroll
        for (int i = 0; i < 2; ++i) init_barrier(shared_address(patch_barriers + i), 1);
        fence_barrier_init();
        // Weights, which no kernel writes, are under way before the kernel before has ended.
        expect_bytes(barrier, TAPS * TAP_NBYTES);
#pragma unroll
        for (int i = 0; i < TAPS; ++i) tma_load(weights + i * TAP_NBYTES, &weight_map, 0, 0, i, 0, barrier);
    }
    wait_for_previous_kernel();
    if (threadIdx.x == 0) load_patch(blockIdx.x, 0), load_patch(blockIdx.x + gridDim.x, 1);
    __syncthreads();  // the barriers are there

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int own = min(warp * 16 + (lane & 15), POSITIONS - 1);
    const int corner = (own / TILE_COLUMNS + 1) * PITCH + own % TILE_COLUMNS + 1;
    const unsigned matrix = matrix_descriptor(weights);
    wait_barrier(shared_address(&weight_barrier), 0);
    int buffer = 0;
    unsigned phase = 0;
    for (int tile = blockIdx.x; tile < all_tiles; tile += gridDim.x) {
        const int sample = tile / tiles, row = tile % tiles / across * TILE_ROWS, column = tile % tiles % across * TILE_COLUMNS;
        const unsigned patch = weights + PATCHES + buffer * PATCH_SPACE;
        wait_barrier(shared_address(patch_barriers + buffer), phase);
        __syncwarp();
        float sum[PARITIES][COLUMNS / 2] = {};
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);  // zeros are written here, and not between products
        unsigned a[2][PLACES][4];
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
            for (int place = 0; place < PLACES; ++place) {
                const int pixel = corner - (place & 1) - (place >> 1) * PITCH;
                ldmatrix_x4(a[k & 1][place], patch + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
            }
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap)
                wgmma<COLUMNS>(sum[parity_of(tap)], a[k & 1][place_of(tap)], matrix + tap * (TAP_NBYTES >> 4) + 2 * k);
            wgmma_commit();
            wgmma_wait<1>();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);

        float2 factors[COLUMNS / 8];  // of this thread's channels
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            const float* d = demod + (size_t)sample * demod_count + n * 8 + 2 * (lane & 3);
            factors[n] = demod ? make_float2(unit * d[0], unit * d[1]) : make_float2(unit, unit);
        }
        if (threadIdx.x == 0) bulk_wait_read<0>();
        __syncthreads();  // all warps have left the tile's pixels, and the results before are stored
        if (threadIdx.x == 0) load_patch(tile + 2 * gridDim.x, buffer);
        const int first_place = opaque(warp * 16 + (lane >> 2));  // addresses follow from it here, and take no registers from products
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int place = first_place + half * 8;
            if (place >= POSITIONS) continue;
#pragma unroll
            for (int parity = 0; parity < PARITIES; ++parity) {
                const int y = 2 * (place / TILE_COLUMNS) + (parity >> 1);
                const int pair = y * TILE_COLUMNS + place % TILE_COLUMNS;
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; ++n) {
                    const float even = sum[parity][4 * n + 2 * half], odd = sum[parity][4 * n + 2 * half + 1];
                    const unsigned rounded = to_half2(even * factors[n].x, odd * factors[n].y);
                    const unsigned shared = results + pair * ROW_NBYTES + swizzle((parity & 1) * PIECES + n, pair) * 16 + (lane & 3) * 4;
                    asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(shared), "r"(rounded) : "memory");
                }
            }
        }
        fence_async_proxy();
        __syncthreads();
        if (threadIdx.x == 0) {
            tma_store(&t_map, results, 0, column, 2 * row, sample);
            bulk_commit();
        }
        const int last = side - column, y = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
        if (last < TILE_COLUMNS && y < 2 * TILE_ROWS && 2 * row + y < whole) {
            const int pair = y * TILE_COLUMNS + last;
            uint4 v;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                         : "r"(results + pair * ROW_NBYTES + swizzle(piece, pair) * 16)
                         : "memory");
            *reinterpret_cast<uint4*>(t + (((size_t)sample * whole + 2 * row + y + 1) * whole - 1) * COLUMNS + piece * 8) = v;
        }
        buffer ^= 1, phase ^= buffer == 0;
    }
    if (threadIdx.x == 0) bulk_wait<0>();
}
