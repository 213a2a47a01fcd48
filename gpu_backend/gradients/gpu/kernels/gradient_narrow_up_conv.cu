// A transposed convolution with stride 2, from `side` to 2 side + 1, from up to GROUPS x 64 channels to 32 or 64, by Hopper's wgmma: the formula of
// gradient_up_conv.
//
// A block computes 32 channels, whose weights of all taps stay in shared memory. Teams of two warpgroups compute tile after tile of 9 x 14 positions and their
// four results, see there, apart from each other. The pixels of a tile are copied while a team's former results, and those of the other team, are computed. TMA
// stores the results. Of 32 channels in all, rows of t lie in memory as pairs of pixels, of 128 bytes each, and a last pixel, which threads store.
//
//     | weights, groups x 9 taps x 32 x 64 channels | each team: x of BUFFERS tiles, groups x 10 x 15 pixels; results, 18 x 28 pixels |
//
//     copies    | x of tile n + BUFFERS, once all warps of the team have left tile n
//     products  | groups x 4 x (four places of x -> registers, 9 wgmma)
//     results   | fp16, once those of tile n - 1 are stored
//
// Macro GROUPS: 1, to 32 channels, or 2, to 64. Grid: blocks that share the tiles, tiles of channels. Tiles are those of all samples, `tiles` each, `across`
// in a row.
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
    TEAM = 256,  // threads; a warpgroup has 64 positions
    TEAMS = 2,
    THREADS = TEAMS * TEAM,
    COLUMNS = 32,
    TAPS = 9,
    PLACES = 4,    // of x that a position needs
    PARITIES = 4,  // of result rows and columns: both even, columns odd, rows odd, both odd
    TILE_ROWS = 9,  // 126 of 128 positions; of 513 x 513 they make 15.98 tiles for each of 132 multiprocessors
    TILE_COLUMNS = 14,
    POSITIONS = TILE_ROWS * TILE_COLUMNS,
    PITCH = TILE_COLUMNS + 1,
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    WEIGHT_NBYTES = GROUPS * TAPS * TAP_NBYTES,
    PATCH_NBYTES = (TILE_ROWS + 1) * PITCH * ROW_NBYTES,
    PATCH_SPACE = (PATCH_NBYTES + 1023) / 1024 * 1024,
    BUFFERS = GROUPS == 1 ? 2 : 1,
    PAIRED = GROUPS == 1,
    RESULT_NBYTES = COLUMNS * 2,
    RESULTS_SPACE = (PARITIES * POSITIONS * RESULT_NBYTES + 1023) / 1024 * 1024,
    TEAM_NBYTES = BUFFERS * GROUPS * PATCH_SPACE + RESULTS_SPACE,
    PIECES = COLUMNS / 8,  // of a result, 16 bytes each
};

// Of a tap: the parity of its results, and the place of x: 0, (i, j); 1, a column back; 2, a row back; 3, both.
__device__ constexpr int parity_of(int tap) { return (tap / 3 & 1) * 2 + (tap % 3 & 1); }
__device__ constexpr int place_of(int tap) { return tap / 3 / 2 * 2 + tap % 3 / 2; }

// Where a piece of the result in a row and column of the tile's lies, as TMA swizzles it.
__device__ __forceinline__ unsigned place_of_result(int row, int column, int piece) {
    if constexpr (PAIRED) {
        const int pair = row * TILE_COLUMNS + (column >> 1);
        return pair * 2 * RESULT_NBYTES + swizzled<2 * RESULT_NBYTES>((column & 1) * PIECES + piece, pair) * 16;
    } else {
        const int pixel = row * 2 * TILE_COLUMNS + column;
        return pixel * RESULT_NBYTES + swizzled<RESULT_NBYTES>(piece, pixel) * 16;
    }
}

// Copies a box of the size in the map to an array; what is outside of it is left out.
__device__ __forceinline__ void tma_store(const TensorMap* map, unsigned source, int channel, int column, int row, int picture) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(channel), "r"(column), "r"(row),
                 "r"(picture), "r"(source)
                 : "memory");
}

__shared__ __align__(8) unsigned long long weight_barrier, patch_barriers[TEAMS][BUFFERS];

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient_narrow_up_conv(
    const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap t_map,
    const float* __restrict__ demod, half_bits* __restrict__ t, int side, int across, int tiles, int all_tiles, int demod_count, float unit) {
    extern __shared__ unsigned char unaligned[];
    const unsigned weights = opaque((shared_address(unaligned) + 1023u) & ~1023u);
    const int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM, first_channel = blockIdx.y * COLUMNS;
    const unsigned patches = weights + WEIGHT_NBYTES + team * TEAM_NBYTES, results = patches + BUFFERS * GROUPS * PATCH_SPACE;
    const int first_tile = blockIdx.x * TEAMS + team, stride = gridDim.x * TEAMS;

    // A team's first thread issues its copies.
    auto load_patch = [&](int tile, int buffer) {
        if (tile >= all_tiles) return;
        const unsigned barrier = shared_address(patch_barriers[team] + buffer);
        const int sample = tile / tiles, row = tile % tiles / across, column = tile % tiles % across;
        expect_bytes(barrier, GROUPS * PATCH_NBYTES);
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
            tma_load(
                patches + (buffer * GROUPS + group) * PATCH_SPACE, &x_map, group * DEPTH, column * TILE_COLUMNS - 1, row * TILE_ROWS - 1, sample, barrier);
    };
    auto sync_team = [&] { asm volatile("bar.sync %0, %1;\n" ::"r"(team + 1), "n"(int(TEAM)) : "memory"); };
    if (thread == 0) {
#pragma unroll
        for (int i = 0; i < BUFFERS; ++i) init_barrier(shared_address(patch_barriers[team] + i), 1);
    }
    if (threadIdx.x == 0) {
        const unsigned barrier = shared_address(&weight_barrier);
        init_barrier(barrier, 1);
        fence_barrier_init();
        // Weights, which no kernel writes, are under way before the kernel before has ended.
        expect_bytes(barrier, WEIGHT_NBYTES);
#pragma unroll
        for (int i = 0; i < GROUPS * TAPS; ++i)
            tma_load(weights + i * TAP_NBYTES, &weight_map, i / TAPS * DEPTH, first_channel, i % TAPS, 0, barrier);
    } else if (thread == 0) {
        fence_barrier_init();
    }
    wait_for_previous_kernel();
    if (thread == 0)
#pragma unroll
        for (int i = 0; i < BUFFERS; ++i) load_patch(first_tile + i * stride, i);
    __syncthreads();  // the barriers are there

    const int lane = threadIdx.x & 31, warp = thread >> 5;
    const int own = min(warp * 16 + (lane & 15), POSITIONS - 1);
    const int corner = (own / TILE_COLUMNS + 1) * PITCH + own % TILE_COLUMNS + 1;
    const unsigned matrix = matrix_descriptor(weights);
    wait_barrier(shared_address(&weight_barrier), 0);
    int buffer = 0;
    unsigned phase = 0;
    for (int tile = first_tile; tile < all_tiles; tile += stride) {
        const int sample = tile / tiles, row = tile % tiles / across * TILE_ROWS, column = tile % tiles % across * TILE_COLUMNS;
        wait_barrier(shared_address(patch_barriers[team] + buffer), phase);
        __syncwarp();
        float sum[PARITIES][COLUMNS / 2] = {};
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);  // zeros are written here, and not between products
        unsigned a[PLACES][4];  // of the product in flight: other warpgroups compute meanwhile
#pragma unroll
        for (int k = 0; k < GROUPS * PRODUCTS; ++k) {
            const int group = k / PRODUCTS;
            const unsigned patch = patches + (buffer * GROUPS + group) * PATCH_SPACE;
            if (k > 0) wgmma_wait<0>();
#pragma unroll
            for (int place = 0; place < PLACES; ++place) {
                const int pixel = corner - (place & 1) - (place >> 1) * PITCH;
                ldmatrix_x4(a[place], patch + pixel * ROW_NBYTES + swizzle(2 * (k % PRODUCTS) + (lane >> 4), pixel) * 16);
            }
            wgmma_fence();
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap)
                wgmma<COLUMNS>(
                    sum[parity_of(tap)], a[place_of(tap)], matrix + (group * TAPS + tap) * (TAP_NBYTES >> 4) + 2 * (k % PRODUCTS));
            wgmma_commit();
        }
        if (thread == 0) bulk_wait_read<0>();
        sync_team();  // all warps have the tile's pixels in registers, and the results before are stored
        if (thread == 0) load_patch(tile + BUFFERS * stride, buffer);
        __syncwarp();
        wgmma_wait<0>();
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);

        float2 factors[COLUMNS / 8];  // of this thread's channels
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            const float* d = demod + (size_t)sample * demod_count + first_channel + n * 8 + 2 * (lane & 3);
            factors[n] = demod ? make_float2(unit * d[0], unit * d[1]) : make_float2(unit, unit);
        }
        const int first_place = opaque(warp * 16 + (lane >> 2));  // addresses follow from it here, and take no registers from products
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int place = first_place + half * 8;
            if (place >= POSITIONS) continue;
#pragma unroll
            for (int parity = 0; parity < PARITIES; ++parity) {
                const int y = 2 * (place / TILE_COLUMNS) + (parity >> 1), x = 2 * (place % TILE_COLUMNS) + (parity & 1);
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; ++n) {
                    const float even = sum[parity][4 * n + 2 * half], odd = sum[parity][4 * n + 2 * half + 1];
                    const unsigned rounded = to_half2(even * factors[n].x, odd * factors[n].y);
                    const unsigned shared = results + place_of_result(y, x, n) + (lane & 3) * 4;
                    asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(shared), "r"(rounded) : "memory");
                }
            }
        }
        fence_async_proxy();
        sync_team();
        if (thread == 0) {
            tma_store(&t_map, results, first_channel, PAIRED ? column : 2 * column, 2 * row, sample);
            bulk_commit();
        }
        if constexpr (PAIRED) {
            const int last = side - column, y = thread / PIECES, piece = thread % PIECES, whole = 2 * side + 1;
            if (last < TILE_COLUMNS && y < 2 * TILE_ROWS && 2 * row + y < whole) {
                uint4 v;
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                             : "r"(results + place_of_result(y, 2 * last, piece))
                             : "memory");
                *reinterpret_cast<uint4*>(t + (((size_t)sample * whole + 2 * row + y + 1) * whole - 1) * COLUMNS + piece * 8) = v;
            }
        }
        if (++buffer == BUFFERS) buffer = 0, phase ^= 1;
    }
    if (thread == 0) bulk_wait<0>();
}
