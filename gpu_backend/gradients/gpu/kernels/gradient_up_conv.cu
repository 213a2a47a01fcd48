// A transposed convolution with stride 2, from `side` to 2 side + 1, by Hopper's wgmma:
//
//     sums[slice][sample][2 i + y, 2 j + x][o] += sum over channels c of the slice of  x[i, j, c] W[3 y + x][o, c]      y, x = 0, 1, 2
//
// Arrays are those of gradient_conv. Four results belong to a position (i, j), 0 <= i, j <= side, those at rows 2 i and 2 i + 1 and columns 2 j and
// 2 j + 1; they need x at (i, j), (i, j - 1), (i - 1, j) and (i - 1, j - 1). Positions are counted row after row; where the row of x ends, position
// `side` reads zeros, which also stand left of the next row. So the four are always 0, 1, side + 1 and side + 2 positions back.
//
// A block computes COLUMNS channels of 128 positions and their four results. The positions that it needs of a group of 64 input channels lie in shared
// memory once and serve all nine taps; the weights of three taps are a stage of a ring. K is cut into `slices` between groups of channels. Where
// the last position alone would need another block, the last one adds its single product.
//
//     | weights, STAGES of 3 taps x COLUMNS x 64 channels | positions of even groups | positions of odd groups |
//
//     copies    | weights of step s + STAGES - 1 by TMA, once all warps have left step s - 1; positions of the next group by all threads, in its first step
//     products  | step s: 2 x (one or two fragments of two products -> registers, 6 wgmma)
//
// Macros: COLUMNS: 64. STAGES. Grid: tiles of all samples, tiles of channels, slices. `pixels`, what a block copies of a group, of 32.
#define HALF 1
#define DEPTH 64
#define USE_WGMMA 1
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/registers.cuh"
#include "parts/wgmma.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    POSITIONS = 128,
    THREADS = 256,  // two warpgroups, of 64 positions each
    PARITIES = 4,   // of result rows and columns: both even, columns odd, rows odd, both odd
    STEPS = 3,      // of a group of channels, three taps each
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    STAGE_NBYTES = 3 * TAP_NBYTES,
    PIECE_PIXELS = THREADS / 8,  // what all threads copy at once
    TOGETHER = 2,  // products that are committed together
};

// Taps in the order in which they are multiplied, those of a place of x after each other: weights, parity of the result, and which of a step's
// fragments; then the places of a step's fragments: 0, (i, j); 1, a column back; 2, a row back; 3, both.
__device__ constexpr int weight_of(int tap) { return tap == 2 ? 3 : tap == 3 ? 4 : tap == 4 ? 2 : tap; }
__device__ constexpr int parity_of(int tap) { return (weight_of(tap) / 3 & 1) * 2 + (weight_of(tap) % 3 & 1); }
__device__ constexpr int fragment_of(int tap) { return tap == 4 || tap == 5 || tap == 8 ? 1 : 0; }
__device__ constexpr int fragments_of(int step) { return step == 0 ? 1 : 2; }
__device__ constexpr int place_of(int step, int fragment) { return step == 2 ? 2 + fragment : fragment; }

__shared__ __align__(8) unsigned long long weight_barriers[STAGES], free_barriers[STAGES], patch_barriers[2];

// Arrives once this thread's copies so far have come.
__device__ __forceinline__ void arrive_with_copies(unsigned barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient_up_conv(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, const __grid_constant__ TensorMap weight_map,
    float* __restrict__ sums, int side, int cin, int cout, int slices, int tiles, int pixels) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), patches = ring + STAGES * STAGE_NBYTES;
    const int tile = blockIdx.x % tiles, sample = blockIdx.x / tiles, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z, pitch = side + 1, whole = 2 * side + 1;
    const int first = groups * slice / slices, last = groups * (slice + 1) / slices, first_position = tile * POSITIONS;
    const int count = last - first, steps = count * STEPS;
    const int patch_nbytes = pixels * ROW_NBYTES;
    const float inverse = 1.0f / (float)pitch;
    x += (size_t)sample * side * side * cin;

    const int chunk = threadIdx.x & 7, load_row = threadIdx.x >> 3;
    auto load_patch = [&](int group) {
        const int k = (first + group) * DEPTH + chunk * 8;
        for (int place = load_row; place < pixels; place += PIECE_PIXELS) {
            const int position = first_position + place + pitch - 1;  // two rows more, so that none is negative
            const int row = (int)(((float)position + 0.5f) * inverse), column = position - row * pitch, y = row - 2;
            const bool is_inside = k < cin && (unsigned)y < (unsigned)side && column < side;
            copy_async(
                patches + (group & 1) * patch_nbytes + place * ROW_NBYTES + swizzle(chunk, place) * 16,
                is_inside ? x + ((y * side + column) * cin + k) : x, is_inside);
        }
        arrive_with_copies(shared_address(patch_barriers + (group & 1)));
    };
    auto load_weights = [&](int step, int stage) {  // by the first thread
        const unsigned barrier = shared_address(weight_barriers + stage);
        expect_bytes(barrier, STAGE_NBYTES);
#pragma unroll
        for (int tap = 0; tap < 3; ++tap) {
            const int which = 3 * (step % STEPS) + tap;
            tma_load(
                ring + stage * STAGE_NBYTES + tap * TAP_NBYTES, &weight_map, (first + step / STEPS) * DEPTH, first_channel,
                weight_of(which), 0, barrier);
        }
    };

    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(shared_address(weight_barriers + i), 1);
            init_barrier(shared_address(free_barriers + i), THREADS / 32);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) init_barrier(shared_address(patch_barriers + i), THREADS);
        fence_barrier_init();
        // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll
        for (int i = 0; i < STAGES; ++i)
            if (i < steps) load_weights(i, i);
    }
    __syncthreads();  // the barriers are there
    wait_for_previous_kernel();
    load_patch(0);
    if (count > 1) load_patch(1);

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int corner = warp * 16 + (lane & 15) + pitch + 1;
    float sum[PARITIES][COLUMNS / 2] = {};
#pragma unroll
    for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);  // zeros are written here, and not between products
    unsigned a[2][TOGETHER][2][4];
    int stage = 0, before = STAGES - 1;  // the stages of this step and of the one before
    unsigned phase = 0, phase_before = 1;
    for (int group = 0; group < count; ++group) {
        const unsigned patch = patches + (group & 1) * patch_nbytes;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const int number = group * STEPS + step;
            if (step == 0) wait_barrier(shared_address(patch_barriers + (group & 1)), group >> 1 & 1);
            wait_barrier(shared_address(weight_barriers + stage), phase);
            __syncwarp();
            const unsigned matrix = matrix_descriptor(ring + stage * STAGE_NBYTES);
#pragma unroll
            for (int half = 0; half < PRODUCTS / TOGETHER; ++half) {
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
                    for (int m = 0; m < fragments_of(step); ++m) {
                        const int pixel = corner - (place_of(step, m) & 1) - (place_of(step, m) >> 1) * pitch;
                        ldmatrix_x4(a[half][i][m], patch + pixel * ROW_NBYTES + swizzle(2 * (half * TOGETHER + i) + (lane >> 4), pixel) * 16);
                    }
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i)
#pragma unroll
                    for (int tap = 0; tap < 3; ++tap) {
                        const int which = 3 * step + tap;
                        wgmma<COLUMNS>(
                            sum[parity_of(which)], a[half][i][fragment_of(which)],
                            matrix + tap * (TAP_NBYTES >> 4) + 2 * (half * TOGETHER + i));
                    }
                wgmma_commit();
                wgmma_wait<1>();
                if (half == 0 && number > 0 && lane == 0) arrive(shared_address(free_barriers + before));  // this warp has left the step before
            }
            // Copies are issued while products run.
            if (number > 0) {
                const bool has_weights = number - 1 + STAGES < steps, has_patch = step == 0 && group + 1 < count;
                if (has_patch || (has_weights && threadIdx.x == 0)) wait_barrier(shared_address(free_barriers + before), phase_before);
                if (has_weights && threadIdx.x == 0) load_weights(number - 1 + STAGES, before);
                __syncwarp();
                if (has_patch) load_patch(group + 1);
            }
            before = stage, phase_before = phase;
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);

    const int samples = gridDim.x / tiles;
    float* to = sums + (size_t)(slice * samples + sample) * whole * whole * cout;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int position = first_position + warp * 16 + half * 8 + (lane >> 2), i = position / pitch, j = position - i * pitch;
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) {
            const int y = 2 * i + (parity >> 1), column = 2 * j + (parity & 1);
            if (y >= whole || column >= whole) continue;
            float* pixel = to + (size_t)(y * whole + column) * cout;
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; ++n) {
                const int channel = first_channel + n * 8 + 2 * (lane & 3);
                if (channel < cout)
                    *reinterpret_cast<float2*>(pixel + channel) = make_float2(sum[parity][4 * n + 2 * half], sum[parity][4 * n + 2 * half + 1]);
            }
        }
    }
    if (tile < tiles - 1 || tiles * POSITIONS > side * (side + 2)) return;
    const int channel = first_channel + (threadIdx.x >> 2), corner_place = (side * side - 1) * cin;
    float total = 0.0f;
    if (channel < cout)
        for (int k = first * DEPTH + (threadIdx.x & 3) * 8; k < min(last * DEPTH, cin); k += 32) {
            float v[8], w[8];
            load_many(x + corner_place + k, v), load_many(weight + (size_t)(8 * cout + channel) * cin + k, w);
#pragma unroll
            for (int i = 0; i < 8; ++i) total = fmaf(v[i], w[i], total);
        }
    total += __shfl_xor_sync(0xffffffffu, total, 1), total += __shfl_xor_sync(0xffffffffu, total, 2);
    if (channel < cout && (threadIdx.x & 3) == 0) to[(size_t)(whole * whole - 1) * cout + channel] = total;
}
