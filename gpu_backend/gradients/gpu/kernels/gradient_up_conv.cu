// A transposed convolution with stride 2, from `side` to 2 side + 1, by Hopper's wgmma:
//
//     t[sample][2 i + y, 2 j + x][o] += unit demod[o] sum over channels c of  x[i, j, c] W[3 y + x][o, c]      y, x = 0, 1, 2
//
// t is fp16, rounded once; demodulated it is as large as what the filter makes of it. A discriminator has no demod. Other arrays are those of
// gradient_conv.
//
// Four results belong to a position (i, j), 0 <= i, j <= side, those at rows 2 i and 2 i + 1 and columns 2 j and 2 j + 1; they need x at (i, j),
// (i, j - 1), (i - 1, j) and (i - 1, j - 1). Positions are counted row after row; where the row of x ends, position `side` reads zeros, which also
// stand left of the next row. So the four are always 0, 1, side + 1 and side + 2 positions back.
//
// A block computes COLUMNS channels of 128 positions and their four results. The positions that it needs of a group of 64 input channels lie in shared
// memory once and serve all nine taps; the weights of three taps are a stage of a ring. TMA copies successive positions across the ends of rows (its
// mode "im2col"), within a rectangle that is one column wider than x and begins two rows above it. Where the last position alone would need another
// block, the last one adds its single product.
//
//     | weights, STAGES of 3 taps x COLUMNS x 64 channels | positions of even groups | positions of odd groups |
//
//     copies    | weights of step s + STAGES - 1 and, in the first step of a group, positions of the next one, once all warps have left step s - 1
//     products  | step s: 2 x (one or two fragments of two products -> registers, 6 wgmma)
//
// CLUSTER blocks are the slices of split-K of a tile, cut between groups of channels. Each leaves its sums in its shared memory, where copies were, and
// adds up all blocks' sums of its share of the positions:
//
//     | sums, results of each parity x SUM_PITCH | products of the last position alone |
//
// A block alone rounds its sums there, and all threads store lines of 64 channels:
//
//     | fp16, results of each parity x LINE_PITCH |
//
// Macros: COLUMNS: 64. STAGES. CLUSTER: 1 to 8. Grid: tiles of all samples, tiles of channels, CLUSTER. A group's positions are `runs` copies of `run`
// positions, a multiple of 8.
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
#include "parts/gradient_cluster.cuh"

enum : int {
    POSITIONS = 128,
    THREADS = 256,  // two warpgroups, of 64 positions each
    PARITIES = 4,   // of result rows and columns: both even, columns odd, rows odd, both odd
    STEPS = 3,      // of a group of channels, three taps each
    TAP_NBYTES = COLUMNS * ROW_NBYTES,
    STAGE_NBYTES = 3 * TAP_NBYTES,
    TOGETHER = 2,  // products that are committed together
    SUM_PITCH = COLUMNS + 8,  // of a result in shared memory, so that those of neighbours are in different banks
    SUM_NBYTES = PARITIES * POSITIONS * SUM_PITCH * 4,
    LINE_PITCH = COLUMNS * 2 + 16,  // in bytes, likewise
    QUADS = COLUMNS / 4,
    RESULT_ROWS = THREADS / QUADS,  // results that are added up side by side
    BATCH = 4,  // turns whose sums are loaded together
    PIECES = COLUMNS / 8,  // of a result, 16 bytes each
};
static_assert(PARITIES * POSITIONS * LINE_PITCH <= STAGES * STAGE_NBYTES, "lines lie where the weights were");

// Taps in the order in which they are multiplied, those of a place of x after each other: weights, parity of the result, and which of a step's
// fragments; then the places of a step's fragments: 0, (i, j); 1, a column back; 2, a row back; 3, both.
__device__ constexpr int weight_of(int tap) { return tap == 2 ? 3 : tap == 3 ? 4 : tap == 4 ? 2 : tap; }
__device__ constexpr int parity_of(int tap) { return (weight_of(tap) / 3 & 1) * 2 + (weight_of(tap) % 3 & 1); }
__device__ constexpr int fragment_of(int tap) { return tap == 4 || tap == 5 || tap == 8 ? 1 : 0; }
__device__ constexpr int fragments_of(int step) { return step == 0 ? 1 : 2; }
__device__ constexpr int place_of(int step, int fragment) { return step == 2 ? 2 + fragment : fragment; }

__device__ __forceinline__ uint4 load_shared(unsigned address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    return v;
}

__shared__ __align__(8) unsigned long long weight_barriers[STAGES], free_barriers[STAGES], patch_barriers[2];

extern "C" __global__ void WITH_CLUSTERS __launch_bounds__(THREADS, 1) gradient_up_conv(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, const __grid_constant__ TensorMap x_map,
    const __grid_constant__ TensorMap weight_map, const float* __restrict__ demod, half_bits* __restrict__ t, int side, int cin, int cout,
    int tiles, int run, int runs, int demod_count, float unit) {
    extern __shared__ unsigned char unaligned[];
    const unsigned ring = opaque((shared_address(unaligned) + 1023u) & ~1023u), patches = ring + STAGES * STAGE_NBYTES;
    const int tile = blockIdx.x % tiles, sample = blockIdx.x / tiles, first_channel = blockIdx.y * COLUMNS;
    const int groups = (cin + DEPTH - 1) / DEPTH, slice = blockIdx.z, pitch = side + 1, whole = 2 * side + 1;
    const int first = groups * slice / CLUSTER, last = groups * (slice + 1) / CLUSTER, first_position = tile * POSITIONS;
    const int count = last - first, steps = count * STEPS;
    const int patch_nbytes = runs * run * ROW_NBYTES;
    const int positions = min(POSITIONS, side * (side + 2) + 1 - first_position);  // of the tile
    const int busy_warps = positions <= POSITIONS / 2 ? THREADS / 64 : THREADS / 32;

    // The first thread issues all copies.
    auto load_patch = [&](int group) {
        const unsigned barrier = shared_address(patch_barriers + (group & 1)), patch = patches + (group & 1) * patch_nbytes;
        expect_bytes(barrier, patch_nbytes);
#pragma unroll 1
        for (int i = 0; i < runs; ++i) {
            const int position = first_position + pitch - 1 + i * run;  // counted from two rows above x
            tma_load_window(
                patch + i * run * ROW_NBYTES, &x_map, (first + group) * DEPTH, position % pitch, position / pitch - 2, sample, 0, 0, barrier);
        }
    };
    auto load_weights = [&](int step, int stage) {
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
            init_barrier(shared_address(free_barriers + i), busy_warps);
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
    const int corner = warp * 16 + (lane & 15) + pitch + 1;
    float sum[PARITIES][COLUMNS / 2] = {};
#pragma unroll
    for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);  // zeros are written here, and not between products
    unsigned a[2][TOGETHER][2][4];
    int stage = 0, before = STAGES - 1;  // the stages of this step and of the one before
    unsigned phase = 0, phase_before = 1;
    const int own_count = warp < busy_warps ? count : 0;
    for (int group = 0; group < own_count; ++group) {
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
            if (number > 0 && threadIdx.x == 0) {
                const bool has_weights = number - 1 + STAGES < steps, has_patch = step == 0 && group + 1 < count;
                if (has_weights || has_patch) wait_barrier(shared_address(free_barriers + before), phase_before);
                if (has_weights) load_weights(number - 1 + STAGES, before);
                if (has_patch) load_patch(group + 1);
            }
            __syncwarp();
            before = stage, phase_before = phase;
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int parity = 0; parity < PARITIES; ++parity) wgmma_fence_sums(sum[parity]);

    if (demod) demod += (size_t)sample * demod_count;
    half_bits* to = t + (size_t)sample * whole * whole * cout;
    // Where a result of a position lies in memory, or null outside of the picture.
    auto pixel_of = [&](int position, int parity) -> half_bits* {
        const int i = position / pitch, y = 2 * i + (parity >> 1), column = 2 * (position - i * pitch) + (parity & 1);
        return y < whole && column < whole ? to + (size_t)(y * whole + column) * cout : nullptr;
    };
    auto factor_of = [&](int channel) { return channel < cout && demod ? unit * demod[channel] : unit; };
    float2 factors[COLUMNS / 8];  // of this thread's channels
    if constexpr (CLUSTER == 1) {
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; ++n) {
            const int channel = first_channel + n * 8 + 2 * (lane & 3);
            factors[n] = make_float2(factor_of(channel), factor_of(channel + 1));
        }
    }
    __syncthreads();  // all products are done
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int place = warp * 16 + half * 8 + (lane >> 2);
        if (place >= positions) continue;
#pragma unroll
        for (int parity = 0; parity < PARITIES; ++parity) {
            const int result = parity * POSITIONS + place;
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; ++n) {
                const float even = sum[parity][4 * n + 2 * half], odd = sum[parity][4 * n + 2 * half + 1];
                if constexpr (CLUSTER > 1) {
                    const unsigned shared = ring + (result * SUM_PITCH + n * 8 + 2 * (lane & 3)) * 4;
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(shared), "f"(even), "f"(odd) : "memory");
                } else {
                    const unsigned shared = ring + result * LINE_PITCH + n * 16 + (lane & 3) * 4;
                    const unsigned rounded = to_half2(even * factors[n].x, odd * factors[n].y);
                    asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(shared), "r"(rounded) : "memory");
                }
            }
        }
    }

    const bool has_last = tile == tiles - 1 && tiles * POSITIONS <= side * (side + 2);
    half_bits* const last_pixel = to + (size_t)(whole * whole - 1) * cout;
    if (has_last) {
        const int channel = first_channel + (threadIdx.x >> 2);
        const half_bits* const last_x = x + ((size_t)(sample + 1) * side * side - 1) * cin;
        float total = 0.0f;
        if (channel < cout)
#pragma unroll 4
            for (int k = first * DEPTH + (threadIdx.x & 3) * 8; k < min(last * DEPTH, cin); k += 32) {
                float v[8], w[8];
                load_many(last_x + k, v), load_many(weight + (size_t)(8 * cout + channel) * cin + k, w);
#pragma unroll
                for (int i = 0; i < 8; ++i) total = fmaf(v[i], w[i], total);
            }
        total += __shfl_xor_sync(0xffffffffu, total, 1), total += __shfl_xor_sync(0xffffffffu, total, 2);
        if ((threadIdx.x & 3) == 0) {
            if constexpr (CLUSTER > 1)
                asm volatile("st.shared.f32 [%0], %1;\n" ::"r"(ring + SUM_NBYTES + threadIdx.x), "f"(total) : "memory");
            else if (channel < cout)
                last_pixel[channel] = to_half(total * factor_of(channel));
        }
    }
    if constexpr (CLUSTER == 1) {
        __syncthreads();
        const int piece = threadIdx.x % PIECES, channel = first_channel + 8 * piece;
#pragma unroll 4
        for (int result = threadIdx.x / PIECES; result < PARITIES * positions; result += THREADS / PIECES) {
            const int parity = result % PARITIES, place = result / PARITIES;
            half_bits* pixel = pixel_of(first_position + place, parity);
            if (pixel && channel < cout)
                *reinterpret_cast<uint4*>(pixel + channel) = load_shared(ring + (parity * POSITIONS + place) * LINE_PITCH + piece * 16);
        }
        return;
    }

    sync_cluster();
    const int share = (positions + CLUSTER - 1) / CLUSTER, begin = slice * share;
    const int results = PARITIES * min(share, positions - begin);  // none if negative
    const int quad = threadIdx.x % QUADS, row = threadIdx.x / QUADS, channel = first_channel + 4 * quad;
    float factors_of_quad[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) factors_of_quad[i] = factor_of(channel + i);
    auto add_up = [&](float (&parts)[CLUSTER][4], half_bits* pixel) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int block = 1; block < CLUSTER; ++block) parts[0][i] += parts[block][i];
            parts[0][i] *= factors_of_quad[i];
        }
        if (channel < cout) store_many(pixel + channel, parts[0]);
    };
#pragma unroll 1
    for (int batch = row; batch < results; batch += BATCH * RESULT_ROWS) {
        float parts[BATCH][CLUSTER][4];
#pragma unroll
        for (int turn = 0; turn < BATCH; ++turn) {
            const int result = batch + turn * RESULT_ROWS, parity = result % PARITIES, place = begin + result / PARITIES;
            if (result >= results) continue;
#pragma unroll
            for (int block = 0; block < CLUSTER; ++block)
                load_sums(ring + ((parity * POSITIONS + place) * SUM_PITCH + 4 * quad) * 4, block, parts[turn][block]);
        }
#pragma unroll
        for (int turn = 0; turn < BATCH; ++turn) {
            const int result = batch + turn * RESULT_ROWS;
            half_bits* pixel = pixel_of(first_position + begin + result / PARITIES, result % PARITIES);
            if (result < results && pixel) add_up(parts[turn], pixel);
        }
    }
    if (has_last && slice == 0 && threadIdx.x < QUADS) {
        float parts[CLUSTER][4];
#pragma unroll
        for (int block = 0; block < CLUSTER; ++block) load_sums(ring + SUM_NBYTES + 16 * quad, block, parts[block]);
        add_up(parts, last_pixel);
    }
    sync_cluster();  // blocks that end would take their sums with them
}
