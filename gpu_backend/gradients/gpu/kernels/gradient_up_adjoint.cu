// The adjoint of a transposed convolution with stride 2, by Hopper's wgmma:
//
//     sums[slice][sample][i, j][o] = sum over taps y, x and channels c of the slice of  t[2 i + y, 2 j + x, c] W[3 y + x][o, c]
//
// Arrays are those of gradient_conv: t is [sample][2 side + 1][2 side + 1][cin], `side` is that of the result. A block computes COLUMNS
// channels of 16 x 16 pixels. Of a group of 64 input channels it needs four planes of t, 17 x 17 pixels whose rows and columns are even or
// odd; they serve four, two, two taps and one. Planes and the weights of taps follow each other through rings of shared memory. A step is one or
// two taps of a plane. K is cut into `slices` between groups of channels.
//
//     | weights, STAGES of a tap: COLUMNS x 64 channels | planes, BUFFERS of 17 x 17 pixels x 64 channels |
//
//     copies    | weights and planes in place of those that all warps have left
//     products  | step s: 4 x (two to four rows of pixels -> registers, two or four wgmma)
//
// Macros: COLUMNS: 128 or 64. STAGES. LAYER_END, WAY_BACK, DISCRIMINATOR, CLUSTER: what becomes of the sums, see parts/gradient_tile_end.cuh.
// Grid: tiles of all samples, tiles of channels, slices.
#define HALF 1
#define DEPTH 64
#define USE_WGMMA 1
#define ACTIVATION 0
#define TAPS 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/gradient_tile_end.cuh"

enum : int {
    KERNEL_TAPS = 9,
    STEPS = 5,  // of a group of channels
    PLANES_OF_T = 4,
    BUFFERS = 3,
    PITCH = SIDE + 1,
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    PLANE_NBYTES = PITCH * PITCH * ROW_NBYTES,
    PLANE_SPACE = (PLANE_NBYTES + 1023) / 1024 * 1024,
};
static_assert(STAGES * TAP_NBYTES + BUFFERS * PLANE_SPACE >= TILE_END_NBYTES, "the sums find room where copies were");

// Planes: rows and columns even; columns odd; rows odd; both odd. Taps by planes, and within a plane those of a column of the kernel after each
// other, so that their rows of pixels are the same but for one: their weights; then the first tap of a step, and its plane.
__device__ constexpr int weight_of(int tap) {
    return tap == 0 ? 0 : tap == 1 ? 6 : tap == 2 ? 2 : tap == 3 ? 8 : tap == 4 ? 1 : tap == 5 ? 7 : tap == 6 ? 3 : tap == 7 ? 5 : 4;
}
__device__ constexpr int taps_of(int step) { return step == 4 ? 1 : 2; }
__device__ constexpr int plane_of(int step) { return step < 2 ? 0 : step - 1; }
__device__ constexpr bool begins_plane(int step) { return step != 1; }
__device__ constexpr int rows_of(int step) { return step < 3 ? 3 : step == 3 ? 4 : 2; }  // of pixels that a warp loads
__device__ constexpr int down_of(int step, int r) { return step == 3 ? r & 1 : r; }
__device__ constexpr int right_of(int step, int r) { return step == 1 || (step == 3 && r >= 2) ? 1 : 0; }
__device__ constexpr int row_of_tap(int step, int tap, int m) { return step == 3 ? 2 * tap + m : tap + m; }

__shared__ __align__(8) unsigned long long weight_barriers[STAGES], free_barriers[STAGES], plane_barriers[BUFFERS];

// A place in a ring, and the phase of its barriers.
template <int COUNT>
struct Place {
    int index;
    unsigned phase;
    __device__ __forceinline__ Place next() const { return index == COUNT - 1 ? Place{0, phase ^ 1} : Place{index + 1, phase}; }
};

extern "C" __global__ void WITH_CLUSTERS __launch_bounds__(THREADS, 1) gradient_up_adjoint(
    const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap weight_map,
#if DISCRIMINATOR
    DISCRIMINATOR_END_PARAMETERS,
#else
    TILE_END_PARAMETERS,
#endif
    int side, int cin, int cout, int slices) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), planes = ring + STAGES * TAP_NBYTES;
    const int across = (side + SIDE - 1) / SIDE, tile = blockIdx.x % (across * across), sample = blockIdx.x / (across * across);
    const int y0 = tile / across * SIDE, x0 = tile % across * SIDE, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z;
    const int first = groups * slice / slices, count = groups * (slice + 1) / slices - first;

    // The first thread issues all copies. `tap` and `plane` may be those of later groups.
    auto load_weights = [&](int group, int tap, int slot) {
        group += tap / KERNEL_TAPS;
        if (group >= count) return;
        const unsigned barrier = shared_address(weight_barriers + slot);
        expect_bytes(barrier, TAP_NBYTES);
        tma_load(ring + slot * TAP_NBYTES, &weight_map, (first + group) * DEPTH, first_channel, weight_of(tap % KERNEL_TAPS), 0, barrier);
    };
    auto load_plane = [&](int group, int plane, int buffer) {
        group += plane / PLANES_OF_T, plane %= PLANES_OF_T;
        if (group >= count) return;
        const unsigned barrier = shared_address(plane_barriers + buffer);
        expect_bytes(barrier, PLANE_NBYTES);
        tma_load(
            planes + buffer * PLANE_SPACE, &x_map, (first + group) * DEPTH, 2 * x0 + (plane & 1), 2 * y0 + (plane >> 1), sample, barrier);
    };

    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(shared_address(weight_barriers + i), 1);
            init_barrier(shared_address(free_barriers + i), busy_warps(y0, side));
        }
#pragma unroll
        for (int i = 0; i < BUFFERS; ++i) init_barrier(shared_address(plane_barriers + i), 1);
        fence_barrier_init();
        // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll
        for (int i = 0; i < STAGES; ++i) load_weights(0, i, i);
    }
    wait_for_previous_kernel();
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < BUFFERS; ++i) load_plane(0, i, i);
    }
    __syncthreads();  // the barriers are there

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int corner = (warp / 4 * 8 + warp % 4 * 2) * PITCH + (lane & 15);  // of the first of a warp's rows of pixels
    float sum[2][COLUMNS / 2] = {};
#pragma unroll
    for (int m = 0; m < 2; ++m) wgmma_fence_sums(sum[m]);  // zeros are written here, and not between products
    unsigned a[2][4][4];
    Place<STAGES> slots[2] = {{0, 0}, {1, 0}}, before[2];  // of the taps of this step, and of the one before
    Place<BUFFERS> buffer = {0, 0}, buffer_before = {0, 0};
    const int own_count = warp < busy_warps(y0, side) ? count : 0;
    for (int group = 0; group < own_count; ++group) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const int last_step = step == 0 ? STEPS - 1 : step - 1;
            if (begins_plane(step)) wait_barrier(shared_address(plane_barriers + buffer.index), buffer.phase);
            unsigned matrices[2];
#pragma unroll
            for (int tap = 0; tap < taps_of(step); ++tap) {
                wait_barrier(shared_address(weight_barriers + slots[tap].index), slots[tap].phase);
                matrices[tap] = matrix_descriptor(ring + slots[tap].index * TAP_NBYTES);
            }
            __syncwarp();
            const unsigned plane = planes + buffer.index * PLANE_SPACE;
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) {
                const int turn = k & 1;
#pragma unroll
                for (int r = 0; r < rows_of(step); ++r) {
                    const int pixel = corner + down_of(step, r) * PITCH + right_of(step, r);
                    ldmatrix_x4(a[turn][r], plane + pixel * ROW_NBYTES + swizzle(2 * k + (lane >> 4), pixel) * 16);
                }
                wgmma_fence();
#pragma unroll
                for (int tap = 0; tap < taps_of(step); ++tap)
#pragma unroll
                    for (int m = 0; m < 2; ++m) wgmma<COLUMNS>(sum[m], a[turn][row_of_tap(step, tap, m)], matrices[tap] + 2 * k);
                wgmma_commit();
                wgmma_wait<1>();
                if (step == 0 && group == 0) continue;
                if (k == 0 && lane == 0)  // this warp has left the step before
#pragma unroll
                    for (int tap = 0; tap < taps_of(last_step); ++tap) arrive(shared_address(free_barriers + before[tap].index));
                if (k == 2) {
                    if (threadIdx.x == 0) {
                        const int of = step == 0 ? group - 1 : group;
#pragma unroll
                        for (int tap = 0; tap < taps_of(last_step); ++tap) {
                            wait_barrier(shared_address(free_barriers + before[tap].index), before[tap].phase);
                            load_weights(of, 2 * last_step + tap + STAGES, before[tap].index);
                        }
                        if (begins_plane(step)) load_plane(of, plane_of(last_step) + BUFFERS, buffer_before.index);
                    }
                    __syncwarp();
                }
            }
#pragma unroll
            for (int tap = 0; tap < 2; ++tap) before[tap] = slots[tap];
#pragma unroll
            for (int tap = 0; tap < taps_of(step); ++tap) slots[0] = slots[0].next(), slots[1] = slots[0].next();
            buffer_before = buffer;
            if (step != 0) buffer = buffer.next();
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
