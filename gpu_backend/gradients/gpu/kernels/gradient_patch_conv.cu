// A 3 x 3 convolution with stride 1 and zero padding 1, or its adjoint, by Hopper's wgmma:
//
//     sums[slice][sample][y, x][o] = sum over taps t and channels c of the slice of  x[y + dy_t, x + dx_t, c] W_t[o, c]
//
// Arrays are those of gradient_conv. A block computes COLUMNS channels of 16 x 16 pixels. The patch of a group of 64 input channels, 18 x 18
// pixels, lies in shared memory once and serves all nine taps; weights of one tap follow each other through a ring of stages. K is cut into
// `slices` between groups of channels. `is_adjoint`: the weights are turned by half a turn.
//
// Macros: COLUMNS: 128 or 64. LAYER_END, WAY_BACK, CLUSTER: what becomes of the sums, see parts/gradient_tile_end.cuh. Grid: tiles of all samples,
// tiles of channels, slices.
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
    PITCH = SIDE + 2,
    TAPS = 9,
    STAGES = COLUMNS == 128 ? 5 : 9,
    AHEAD = STAGES - 2,  // steps; the products of one step may still read its stage while the next one begins
    WEIGHT_NBYTES = COLUMNS * DEPTH * 2,
    PATCH_CHUNKS = PITCH * PITCH * 8,
    PART = 2 * THREADS,  // chunks of the next patch that a step copies
    PARTS = (PATCH_CHUNKS + PART - 1) / PART,
    PATCH_NBYTES = PARTS * PART * 16,  // whole parts, so that no copy is behind a branch
    PARTS_A_STEP = (PARTS + TAPS - AHEAD - 1) / (TAPS - AHEAD),  // so that the next patch is complete when its first tap begins
};
static_assert(STAGES * WEIGHT_NBYTES + 2 * PATCH_NBYTES >= TILE_END_NBYTES, "the sums find room where copies were");
static_assert(PARTS % PARTS_A_STEP == 0, "steps copy whole parts");

extern "C" __global__ void WITH_CLUSTERS __launch_bounds__(THREADS, 1) gradient_patch_conv(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, TILE_END_PARAMETERS, int side, int cin, int cout, int slices,
    int is_adjoint) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), patches = ring + STAGES * WEIGHT_NBYTES;
    const int across = (side + SIDE - 1) / SIDE, tile = blockIdx.x % (across * across), sample = blockIdx.x / (across * across);
    const int y0 = tile / across * SIDE, x0 = tile % across * SIDE, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z;
    const int first = groups * slice / slices, last = groups * (slice + 1) / slices;
    x += (size_t)sample * side * side * cin;

    auto load_patch = [&](int group, int from, int to) {
#pragma unroll
        for (int index = from + (int)threadIdx.x; index < to + (int)threadIdx.x; index += THREADS) {
            const int pixel = index >> 3, chunk = index & 7, k = group * DEPTH + chunk * 8;
            const int y = y0 - 1 + pixel / PITCH, column = x0 - 1 + pixel % PITCH;
            const bool is_inside =
                index < PATCH_CHUNKS && group < last && k < cin && (unsigned)y < (unsigned)side && (unsigned)column < (unsigned)side;
            copy_async(
                patches + (group & 1) * PATCH_NBYTES + pixel * ROW_NBYTES + swizzle(chunk, pixel) * 16,
                is_inside ? x + ((y * side + column) * cin + k) : x, is_inside);
        }
    };
    const int chunk = threadIdx.x & 7, load_row = threadIdx.x >> 3;
    auto load_weights = [&](int group, int tap, int stage) {
        const int k = group * DEPTH + chunk * 8, index = is_adjoint ? TAPS - 1 - tap : tap;
#pragma unroll
        for (int row = load_row; row < load_row + COLUMNS; row += THREADS / 8) {
            const int channel = first_channel + row;
            const bool is_weight = group < last && k < cin && channel < cout;
            copy_async(
                ring + stage * WEIGHT_NBYTES + row * ROW_NBYTES + swizzle(chunk, row) * 16,
                is_weight ? weight + ((index * cout + channel) * cin + k) : weight, is_weight);
        }
    };

    float sum[2][COLUMNS / 2] = {};
    // Weights, which no kernel writes, are under way before the kernel before has ended. They and the patch are one group of copies.
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) load_weights(first, step, step);
    wait_for_previous_kernel();
    load_patch(first, 0, PARTS * PART);
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) commit_copies();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int row = warp / 4 * 8 + warp % 4;  // of the first fragment; that of the second is four below
    const int corner = row * PITCH + (lane & 15);
    unsigned a[2][2][4];
    int stage = 0;
    for (int group = first; group < last; ++group) {
        const unsigned patch = patches + (group & 1) * PATCH_NBYTES;
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap) {
            wait_copies<AHEAD - 1>();
            asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // wgmma reads what cp.async wrote
            __syncthreads();
            const int later = tap + AHEAD, later_stage = stage >= 2 ? stage - 2 : stage + STAGES - 2;
            const unsigned matrix = matrix_descriptor(ring + stage * WEIGHT_NBYTES);
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) {
                const int turn = k & 1;
#pragma unroll
                for (int m = 0; m < 2; ++m) {
                    const int pixel = corner + (4 * m + tap / 3) * PITCH + tap % 3;
                    ldmatrix_x4(a[turn][m], patch + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
                }
                wgmma_fence();
#pragma unroll
                for (int m = 0; m < 2; ++m) wgmma<COLUMNS>(sum[m], a[turn][m], matrix + 2 * k);
                wgmma_commit();
                // Copies are issued while products run.
                if (k == 0) load_weights(group + later / TAPS, later % TAPS, later_stage);
                if (k == 1 && tap * PARTS_A_STEP < PARTS)
                    load_patch(group + 1, tap * PARTS_A_STEP * PART, (tap + 1) * PARTS_A_STEP * PART);
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
