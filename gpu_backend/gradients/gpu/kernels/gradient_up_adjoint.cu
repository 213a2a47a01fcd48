// The adjoint of a transposed convolution with stride 2, by Hopper's wgmma:
//
//     sums[slice][sample][i, j][o] = sum over taps y, x and channels c of the slice of  t[2 i + y, 2 j + x, c] W[3 y + x][o, c]
//
// Arrays are those of gradient_conv: t is [sample][2 side + 1][2 side + 1][cin], `side` is that of the result. A block computes COLUMNS
// channels of 16 x 16 pixels. Of a group of 64 input channels it needs four planes of t, whose rows and columns are even or odd; each lies in
// shared memory once and serves four, two, two taps and one. As soon as a plane's last tap is done, the next group's is copied there. Weights of one
// tap follow each other through a ring of stages. K is cut into `slices` between groups of channels.
//
// Macros: COLUMNS: 128 or 64. LAYER_END, WAY_BACK, CLUSTER: what becomes of the sums, see parts/gradient_tile_end.cuh. Grid: tiles of all samples, tiles
// of channels, slices.
#define HALF 1
#define DEPTH 64
#define USE_WGMMA 1
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/gradient_tile_end.cuh"

enum : int {
    TAPS = 9,
    STAGES = 5,
    AHEAD = STAGES - 2,  // steps; the products of one step may still read its stage while the next one begins
    WEIGHT_NBYTES = COLUMNS * DEPTH * 2,
    MAY_BE_SMALL = COLUMNS < 128,  // smaller than a tile, which then is the only one
    PIECE_PIXELS = THREADS / 8,  // what all threads copy at once
    PIECES = 36,                 // of the four planes
    PIECES_A_STEP = PIECES / TAPS,
    FREE = 4,         // the step after the last tap of the first plane, in whose place the next group's is copied
    PIECES_BEFORE = (TAPS - FREE) * PIECES_A_STEP,  // those that are copied in the group before
    PLANES_NBYTES = PIECES * PIECE_PIXELS * ROW_NBYTES,
};
static_assert(STAGES * WEIGHT_NBYTES + PLANES_NBYTES >= TILE_END_NBYTES, "the sums find room where copies were");

// Planes: rows and columns even; columns odd; rows odd; both odd. Their first pieces, and rows and columns of pixels.
__device__ constexpr int first_piece(int plane) { return plane == 0 ? 0 : plane == 1 ? 10 : plane == 2 ? 19 : 28; }
__device__ constexpr int rows_of(int plane) { return plane & 2 ? SIDE : SIDE + 1; }
__device__ constexpr int pitch_of(int plane) { return plane & 1 ? SIDE : SIDE + 1; }
__device__ constexpr int plane_of_piece(int piece) { return piece < 10 ? 0 : piece < 19 ? 1 : piece < 28 ? 2 : 3; }
// Taps by planes: where a tap's pixels begin in its plane, and its weights.
__device__ constexpr int plane_of_tap(int tap) { return tap < 4 ? 0 : tap < 6 ? 1 : tap < 8 ? 2 : 3; }
__device__ constexpr int down_of(int tap) { return tap < 4 ? tap >> 1 : tap < 6 ? tap - 4 : 0; }
__device__ constexpr int right_of(int tap) { return tap < 4 ? tap & 1 : tap == 7 ? 1 : 0; }
__device__ constexpr int weight_of(int tap) {
    return 3 * (plane_of_tap(tap) & 2 ? 1 : 2 * down_of(tap)) + (plane_of_tap(tap) & 1 ? 1 : 2 * right_of(tap));
}

extern "C" __global__ void WITH_CLUSTERS __launch_bounds__(THREADS, 1) gradient_up_adjoint(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, TILE_END_PARAMETERS, int side, int cin, int cout, int slices) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), planes = ring + STAGES * WEIGHT_NBYTES;
    const int across = (side + SIDE - 1) / SIDE, tile = blockIdx.x % (across * across), sample = blockIdx.x / (across * across);
    const int y0 = tile / across * SIDE, x0 = tile % across * SIDE, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z, whole = 2 * side + 1;
    const int first = groups * slice / slices, last = groups * (slice + 1) / slices;
    x += ((size_t)sample * whole * whole + (size_t)2 * (y0 * whole + x0)) * cin;

    const int chunk = threadIdx.x & 7, load_row = threadIdx.x >> 3;
    auto load_piece = [&](int group, int piece) {
        const int plane = plane_of_piece(piece), place = piece * PIECE_PIXELS + load_row, pixel = place - first_piece(plane) * PIECE_PIXELS;
        const int row = plane & 1 ? pixel / SIDE : pixel / (SIDE + 1), column = pixel - row * pitch_of(plane), k = group * DEPTH + chunk * 8;
        const int y = 2 * row + (plane >> 1), right = 2 * column + (plane & 1);
        const bool is_inside = group < last && k < cin && row < rows_of(plane) && (!MAY_BE_SMALL || (y < whole && right < whole));
        copy_async(
            planes + place * ROW_NBYTES + swizzle(chunk, place) * 16, is_inside ? x + ((y * whole + right) * cin + k) : x, is_inside);
    };
    auto load_weights = [&](int group, int tap, int stage) {
        const int k = group * DEPTH + chunk * 8;
#pragma unroll
        for (int row = load_row; row < load_row + COLUMNS; row += THREADS / 8) {
            const int channel = first_channel + row;
            const bool is_weight = group < last && k < cin && channel < cout;
            copy_async(
                ring + stage * WEIGHT_NBYTES + row * ROW_NBYTES + swizzle(chunk, row) * 16,
                is_weight ? weight + ((weight_of(tap) * cout + channel) * cin + k) : weight, is_weight);
        }
    };

    float sum[2][COLUMNS / 2] = {};
    // Weights, which no kernel writes, are under way before the kernel before has ended. They and the first pieces are one group of copies.
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) load_weights(first, step, step);
    wait_for_previous_kernel();
#pragma unroll
    for (int piece = 0; piece < PIECES_BEFORE; ++piece) load_piece(first, piece);
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) commit_copies();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int row = warp / 4 * 8 + warp % 4;  // of the first fragment; that of the second is four below
    unsigned a[2][2][4];
    int stage = 0;
#pragma unroll
    for (int m = 0; m < 2; ++m) wgmma_fence_sums(sum[m]);  // zeros are written here, and not between products
    for (int group = first; group < last; ++group) {
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            wait_copies<AHEAD - 1>();
            asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // wgmma reads what cp.async wrote
            __syncthreads();
            const int later = tap + AHEAD, later_stage = stage >= 2 ? stage - 2 : stage + STAGES - 2;
            const unsigned matrix = matrix_descriptor(ring + stage * WEIGHT_NBYTES);
            const int plane = plane_of_tap(tap), pitch = pitch_of(plane);
            const int corner = first_piece(plane) * PIECE_PIXELS + (row + down_of(tap)) * pitch + right_of(tap) + (lane & 15);
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) {
                const int turn = k & 1;
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    const int pixel = corner + 4 * m * pitch;
                    ldmatrix_x4(a[turn][m], planes + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
                }
                wgmma_fence();
#pragma unroll
                for (int m = 0; m < 2; ++m) wgmma<COLUMNS>(sum[m], a[turn][m], matrix + 2 * k);
                wgmma_commit();
                // Copies are issued while products run.
                if (k == 0) load_weights(group + later / TAPS, later % TAPS, later_stage);
                if (k == 1)
#pragma unroll
                    for (int i = 0; i < PIECES_A_STEP; ++i)
                        load_piece(tap < FREE ? group : group + 1, (tap + TAPS - FREE) % TAPS * PIECES_A_STEP + i);
                if (k == 2) commit_copies();
                wgmma_wait<1>();
            }
            stage = stage == STAGES - 1 ? 0 : stage + 1;
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < 2; ++m) wgmma_fence_sums(sum[m]);
    end_tile(
        sum, ring, sample, gridDim.x / (across * across), tile, y0, x0, side, first_channel, cout, slice, TILE_END_ARGUMENTS);
}
