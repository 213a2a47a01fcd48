// A 3 x 3 convolution with stride 1 and zero padding 1, or its adjoint, by Hopper's wgmma:
//
//     sums[slice][sample][y, x][o] = sum over taps t and channels c of the slice of  x[y + dy_t, x + dx_t, c] W_t[o, c]
//
// Arrays are those of gradient_conv. A block computes COLUMNS channels of 16 x 16 pixels. The patch of a group of 64 input channels, 18 x 18
// pixels, lies in shared memory once and serves all nine taps. A step is the three taps of one column of the kernel, whose weights are a stage
// of a ring: what a warp loads of four rows of pixels serves its two rows of results three times. K is cut into `slices` between groups of
// channels. `is_adjoint`: the weights are turned by half a turn.
//
// Shared memory, and the pipeline of a group of channels:
//
//     | weights, STAGES of 3 taps x COLUMNS x 64 channels | patch of even groups | patch of odd groups, if there are any |
//
//     copies    | weights of step s + STAGES - 1, once all warps have left step s - 1; patch of the next group in the first step
//     products  | step s: 4 x (four rows of pixels -> registers, 6 wgmma)
//
// Macros: COLUMNS: 128, 64 or 32. STAGES. LAYER_END, WAY_BACK, DISCRIMINATOR, CLUSTER: what becomes of the sums, see parts/gradient_tile_end.cuh.
// Grid: tiles of all samples, tiles of channels, slices.
#define HALF 1
#define DEPTH 64
#define USE_WGMMA 1
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/gradient_tile_end.cuh"

enum : int {
    PITCH = SIDE + 2,
    STEPS = 3,  // of a group of channels
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    STAGE_NBYTES = 3 * TAP_NBYTES,
    PATCH_NBYTES = PITCH * PITCH * ROW_NBYTES,
    PATCH_SPACE = (PATCH_NBYTES + 1023) / 1024 * 1024,
    ROWS = 4,  // of pixels that a warp's two rows of results need
};
static_assert(STAGES * STAGE_NBYTES + PATCH_SPACE + PATCH_NBYTES >= TILE_END_NBYTES, "the sums find room where copies were");

__shared__ __align__(8) unsigned long long weight_barriers[STAGES], patch_barriers[2], free_barriers[STAGES];

extern "C" __global__ void WITH_CLUSTERS __launch_bounds__(THREADS, 1) gradient_patch_conv(
    const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap weight_map,
#if DISCRIMINATOR
    DISCRIMINATOR_END_PARAMETERS,
#if TAPS
    DISCRIMINATOR_JOIN_PARAMETERS,
#endif
#else
    TILE_END_PARAMETERS,
#endif
    int side, int cin, int cout, int slices, int is_adjoint) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), patches = ring + STAGES * STAGE_NBYTES;
    const int across = (side + SIDE - 1) / SIDE, tile = blockIdx.x % (across * across), sample = blockIdx.x / (across * across);
    const int y0 = tile / across * SIDE, x0 = tile % across * SIDE, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z;
    const int first = groups * slice / slices, count = groups * (slice + 1) / slices - first, steps = count * STEPS;

    // The first thread issues all copies.
    auto load_weights = [&](int step, int stage) {
        const unsigned barrier = shared_address(weight_barriers + stage);
        expect_bytes(barrier, STAGE_NBYTES);
#pragma unroll
        for (int dy = 0; dy < 3; ++dy) {
            const int tap = 3 * dy + step % STEPS;
            tma_load(
                ring + stage * STAGE_NBYTES + dy * TAP_NBYTES, &weight_map, (first + step / STEPS) * DEPTH, first_channel,
                is_adjoint ? 3 * STEPS - 1 - tap : tap, 0, barrier);
        }
    };
    auto load_patch = [&](int group) {
        const unsigned barrier = shared_address(patch_barriers + (group & 1));
        expect_bytes(barrier, PATCH_NBYTES);
        tma_load(patches + (group & 1) * PATCH_SPACE, &x_map, (first + group) * DEPTH, x0 - 1, y0 - 1, sample, barrier);
    };

    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(shared_address(weight_barriers + i), 1);
            init_barrier(shared_address(free_barriers + i), busy_warps(y0, side));
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) init_barrier(shared_address(patch_barriers + i), 1);
        fence_barrier_init();
        // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll
        for (int i = 0; i < STAGES; ++i)
            if (i < steps) load_weights(i, i);
    }
    wait_for_previous_kernel();
    if (threadIdx.x == 0) {
        load_patch(0);
        if (count > 1) load_patch(1);
    }
    __syncthreads();  // the barriers are there

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int corner = (warp / 4 * 8 + warp % 4 * 2) * PITCH + (lane & 15);  // of the first of a warp's rows of pixels
    float sum[2][COLUMNS / 2] = {};
#pragma unroll
    for (int m = 0; m < 2; ++m) wgmma_fence_sums(sum[m]);  // zeros are written here, and not between products
    unsigned a[2][ROWS][4];
    int stage = 0, before = STAGES - 1;  // the stages of this step and of the one before
    unsigned phase = 0, phase_before = 1;
    const int own_count = warp < busy_warps(y0, side) ? count : 0;
    for (int group = 0; group < own_count; ++group) {
        const unsigned patch = patches + (group & 1) * PATCH_SPACE;
#pragma unroll
        for (int column = 0; column < STEPS; ++column) {
            const int step = group * STEPS + column;
            if (column == 0) wait_barrier(shared_address(patch_barriers + (group & 1)), group >> 1 & 1);
            wait_barrier(shared_address(weight_barriers + stage), phase);
            __syncwarp();
            const unsigned matrix = matrix_descriptor(ring + stage * STAGE_NBYTES);
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) {
                const int turn = k & 1;
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    const int pixel = corner + r * PITCH + column;
                    ldmatrix_x4(a[turn][r], patch + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
                }
                wgmma_fence();
#pragma unroll
                for (int dy = 0; dy < 3; ++dy)
#pragma unroll
                    for (int m = 0; m < 2; ++m) wgmma<COLUMNS>(sum[m], a[turn][m + dy], matrix + dy * (TAP_NBYTES >> 4) + 2 * k);
                wgmma_commit();
                wgmma_wait<1>();
                if (k == 0 && step > 0 && lane == 0) arrive(shared_address(free_barriers + before));  // this warp has left the step before
                if (k == 2 && step > 0 && threadIdx.x == 0) {
                    const bool has_weights = step - 1 + STAGES < steps, has_patch = column == 0 && group > 0 && group + 1 < count;
                    if (has_weights || has_patch) wait_barrier(shared_address(free_barriers + before), phase_before);
                    if (has_weights) load_weights(step - 1 + STAGES, before);
                    if (has_patch) load_patch(group + 1);
                }
                if (k == 2) __syncwarp();
            }
            before = stage, phase_before = phase;
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < 2; ++m) wgmma_fence_sums(sum[m]);

#if DISCRIMINATOR
    end_tile(sum, ring, sample, y0, x0, side, first_channel, cout, DISCRIMINATOR_END_ARGUMENTS);
#else
    end_tile(
        sum, ring, sample, gridDim.x / (across * across), tile, y0, x0, side, first_channel, cout, slice, TILE_END_ARGUMENTS);
#endif
}
