// The products of an up-convolution alone: the transposed 3 x 3 convolution of stride 2 on tensor cores, times demodulation. `up_filter.cu`
// reads the result, t, and does the rest. The four phases of t are those of modulated_up_conv.cu; as nothing is filtered here, no position
// is computed twice. Positions are (side_in + 1) squared: the last row and the last column have a phase or two.
//
// A block computes CHANNELS output channels of tiles of ROWS x COLUMNS positions, in all phases, and goes from tile to tile: tiles follow
// each other along the picture, then over the blocks of output channels, then over the samples. A warp has sixteen positions of a tile,
// in order along its rows, and all CHANNELS. Copies to the stages run ahead of the products from tile to tile.
//
// Macros: ROWS, COLUMNS, CHANNELS, DEPTH, STAGES, AHEAD, WARPS: see TransposedGeometry in gpu_backend/ops/kernels/unfused_tile.py.
// SHARED_NBYTES: its dynamic_nbytes. HALF and USE_WGMMA are 1, ACTIVATION is 0.
// FP8_X, FP8_Y: see parts/e4m3.cuh; t is what FP8_Y calls y.
//
// Shared memory from the first multiple of 1024 bytes on (TransposedGeometry.dynamic_nbytes in unfused_tile.py):
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights
//     ...
//     stage STAGES - 1
// Static: demodulation of each warp's tile, barriers, which step is copied next.
//
// Pipeline of a tile. Copies run AHEAD steps in front of the products, across the end of a tile too:
//     copies      | s + AHEAD -> stage | ...            by thread 0, once products of step s have begun
//     fragments   | above   | left | above left | ...   by ldmatrix, of one neighbour while products read the one before
//     products    | own x 4 | above x 2 | left x 2 | above left | ...
//     epilogue                                                   | demodulation -> t, from registers
#include "parts/types.cuh"
#include "parts/wgmma.cuh"
#include "parts/registers.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    THREADS = 32 * WARPS,
    PITCH = (COLUMNS + 1 + 7) / 8 * 8,  // pixels from a row of the patch to the next: rows are swizzled alike
    PATCH_LOADED = (ROWS + 1) * PITCH * ROW_NBYTES,
    PATCH_NBYTES = (PATCH_LOADED + 1023) / 1024 * 1024,
    WEIGHT_NBYTES = 9 * CHANNELS * ROW_NBYTES,  // of a step
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    STAGE_NBYTES = PATCH_NBYTES + WEIGHT_SPACE,
    NF = CHANNELS / 8,
    LANE_CHANNELS = FP8_Y && CHANNELS % 64 == 0 ? 16 : 8,  // that a lane stores at a time
    PART = 4 * LANE_CHANNELS,
    LAG = STAGES - AHEAD,  // steps from a stage's products to its next copies
};
static_assert(HALF && USE_WGMMA, "the kernel multiplies fp16 or e4m3 by wgmma");
static_assert(CHANNELS % 32 == 0, "a lane stores 16 bytes of channels at a time");
static_assert(WARPS % 4 == 0 && ROWS * COLUMNS <= 16 * WARPS, "a warp has sixteen positions");
static_assert(AHEAD >= 1 && LAG >= 1, "copies run ahead");
static_assert(CHANNELS <= 128, "a warp copies demodulation at once, four channels a lane");
static_assert(1024 + STAGES * STAGE_NBYTES == SHARED_NBYTES, "the stages lie in the launch's shared memory");

// The products, as packed: four of a position's own pixel, one for each phase; two of the pixel above, two of the one on the left, one of the
// one above that. Phases are 2 * row + column.
__device__ __forceinline__ constexpr int neighbour_of(int product) { return product < 4 ? 0 : product < 6 ? 1 : product < 8 ? 2 : 3; }
__device__ __forceinline__ constexpr int phase_of(int product) { return product < 4 ? product : product == 5 ? 1 : product == 7 ? 2 : 0; }

__shared__ __align__(8) unsigned long long full_barriers[STAGES], empty_barriers[STAGES];
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }

struct Tile {
    int sample, block, y0, x0;  // block: of output channels
};

__device__ __forceinline__ int tiles_across(int side) { return (side / 2 + COLUMNS) / COLUMNS; }
__device__ __forceinline__ int tiles_of_sample(int side) { return tiles_across(side) * ((side / 2 + ROWS) / ROWS); }
__device__ __forceinline__ int tile_count(int side, int cout, int batch) { return tiles_of_sample(side) * ((cout + CHANNELS - 1) / CHANNELS) * batch; }

__device__ __forceinline__ Tile tile_of(int index, int side, int cout) {
    const int area = tiles_of_sample(side), across = tiles_across(side), blocks = (cout + CHANNELS - 1) / CHANNELS;
    const int place = index % area, rest = index / area;
    return {rest / blocks, rest % blocks, place / across * ROWS, place % across * COLUMNS};
}

// A lane's neighbouring channels; of e4m3, their number is a multiple of 16.
__device__ __forceinline__ void store_channels(Y* to, const unsigned (&words)[LANE_CHANNELS / 2]) {
    if constexpr (!FP8_Y) {
        *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    } else if constexpr (LANE_CHANNELS == 16) {
        constexpr int LAST = LANE_CHANNELS / 2 - 1;
        *reinterpret_cast<uint4*>(to) = make_uint4(to_e4m3x4(words[0], words[1]), to_e4m3x4(words[2], words[3]),
                                                   to_e4m3x4(words[LAST - 3], words[LAST - 2]), to_e4m3x4(words[LAST - 1], words[LAST]));
    } else {
        *reinterpret_cast<uint2*>(to) = make_uint2(to_e4m3x4(words[0], words[1]), to_e4m3x4(words[2], words[3]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) transposed_conv(
    const void* __restrict__ weight, Y* __restrict__ t, const float* __restrict__ demod, int batch, int side, int cin, int cout,
    int demod_stride, const __grid_constant__ TensorMap tma_map) {
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float shared_demod[WARPS][CHANNELS];
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid / 32;
    const int steps = (cin + DEPTH - 1) / DEPTH, tiles = tile_count(side, cout, batch);

    // The copies of thread 0, whose state takes no registers: of step `load_step` of tile `load_tile`.
    __shared__ volatile int load_tile, load_step;
    auto load_next = [&](int load_slot, int load_phase) {
        const int index = load_tile, step = load_step, all_steps = (cin + DEPTH - 1) / DEPTH;
        if (index >= tile_count(side, cout, batch)) return;
        const Tile tile = tile_of(index, side, cout);
        const unsigned stage = pool + load_slot * STAGE_NBYTES, barrier = full_barrier(load_slot);
        wait_barrier(empty_barrier(load_slot), load_phase);
        expect_bytes(barrier, PATCH_LOADED + WEIGHT_NBYTES);
        bulk_load(stage + PATCH_NBYTES, static_cast<const unsigned char*>(weight) + static_cast<long long>(tile.block * all_steps + step) * WEIGHT_NBYTES,
                  WEIGHT_NBYTES, barrier);
        tma_load(stage, &tma_map, step * DEPTH, tile.x0 - 1, tile.y0 - 1, tile.sample, barrier);
        const bool is_last = step + 1 == all_steps;
        load_step = is_last ? 0 : step + 1;
        if (is_last) load_tile = index + gridDim.x;
    };
    if (tid == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) init_barrier(full_barrier(i), 1), init_barrier(empty_barrier(i), WARPS);
        fence_barrier_init();
        load_tile = blockIdx.x, load_step = 0;
    }
    __syncthreads();
    wait_for_previous_kernel();
    if (tid == 0) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) load_next(i, 1);  // a barrier is past its phase 1 from the beginning
    }

    // Where the lane's matrix rows lie in a patch, of its position and of the one on the left; that above is some bytes before. Stages begin
    // at multiples of 1024 bytes, so that the chunk of channels is chosen by an exclusive or.
    unsigned own_at, left_at;
    {
        const int position = min(warp * 16 + (lane & 15), ROWS * COLUMNS - 1);
        const int pixel = (position / COLUMNS + 1) * PITCH + position % COLUMNS + 1;
        own_at = pixel * ROW_NBYTES + swizzle(lane >> 4, pixel) * 16;
        left_at = (pixel - 1) * ROW_NBYTES + swizzle(lane >> 4, pixel - 1) * 16;
    }
    for (int i = lane; demod == nullptr && i < CHANNELS; i += 32) shared_demod[warp][i] = 1.0f;
    int slot = 0, phase = 0;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
        if (demod != nullptr) {  // copied while products go on
            __syncwarp();        // every lane has read that of the tile before
            const Tile tile = tile_of(opaque(index), side, cout);
            const int place = threadIdx.x % 32 * 4, channel = tile.block * CHANNELS + place;
            if (place < CHANNELS) {
                copy_async(shared_address(&shared_demod[warp][place]), demod + tile.sample * demod_stride + min(channel, cout - 4), channel < cout);
            }
            commit_copies();
        }
        float sum[4][NF * 4];
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
            for (int i = 0; i < NF * 4; ++i) sum[p][i] = 0.0f;
        }
        // Fragments of the four neighbours by turns, in two sets of registers: one is loaded while products read the other.
        unsigned a[2][4];
        wait_barrier(full_barrier(slot), phase);
        __syncwarp();
        unsigned stage = warp_uniform(pool + slot * STAGE_NBYTES);
        ldmatrix_x4(a[0], stage + own_at);
        for (int step = 0; step < steps; ++step) {
            const unsigned matrix = matrix_descriptor(stage + PATCH_NBYTES);
#pragma unroll
            for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
                for (int neighbour = 0; neighbour < 4; ++neighbour) {
                    wgmma_fence();
#pragma unroll
                    for (int p = 0; p < 9; ++p) {
                        if (neighbour_of(p) != neighbour) continue;
                        const unsigned b = matrix + (p * CHANNELS * ROW_NBYTES + k * 32 >> 4);
                        wgmma<CHANNELS>(sum[phase_of(p)], a[neighbour % 2], b);
                    }
                    wgmma_commit();
                    wgmma_wait<1>();
                    if (k == 0 && neighbour == 0) {
                        if (step > 0 && threadIdx.x % 32 == 0) arrive(empty_barrier(slot == 0 ? STAGES - 1 : slot - 1));
                        // LAG steps ago this stage was left; the copies of the step AHEAD of this one fill it.
                        if (threadIdx.x == 0) load_next(slot < LAG ? slot + AHEAD : slot - LAG, slot < LAG ? phase ^ 1 : phase);
                        __syncwarp();
                    }
                    if (neighbour < 3) {
                        const unsigned at = stage + (neighbour == 0 ? own_at : left_at) ^ k * 32;
                        ldmatrix_x4(a[(neighbour + 1) % 2], neighbour == 1 ? at : at - PITCH * ROW_NBYTES);
                    } else if (k + 1 < PRODUCTS) {
                        ldmatrix_x4(a[0], stage + own_at ^ (k + 1) * 32);
                    }
                }
            }
            if (++slot == STAGES) slot = 0, phase ^= 1;
            if (step + 1 < steps) {
                wait_barrier(full_barrier(slot), phase);
                __syncwarp();
                stage = warp_uniform(pool + slot * STAGE_NBYTES);
                ldmatrix_x4(a[0], stage + own_at);
            }
        }
        wgmma_wait<0>();
#pragma unroll
        for (int p = 0; p < 4; ++p) wgmma_fence_sums(sum[p]);
        if (threadIdx.x % 32 == 0) arrive(empty_barrier(slot == 0 ? STAGES - 1 : slot - 1));
        wait_copies<0>();
        __syncwarp();

        // Of a fragment, a lane holds the positions lane / 4 and lane / 4 + 8; of each PART channels, LANE_CHANNELS beside each other.
        const Tile tile = tile_of(opaque(index), side, cout);
        const int thread = opaque(threadIdx.x), side_in = side / 2, pitch = (side + 1) * cout;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int position = thread / 32 * 16 + half * 8 + thread % 32 / 4;
            const int m = tile.y0 + position / COLUMNS, n = tile.x0 + position % COLUMNS, channel = tile.block * CHANNELS + thread % 4 * LANE_CHANNELS;
            if (position >= ROWS * COLUMNS || m > side_in || n > side_in) continue;
            Y* const to = t + (static_cast<long long>(tile.sample * (side + 1) + 2 * m) * pitch + 2 * n * cout + channel);
#pragma unroll
            for (int part = 0; part < CHANNELS / PART; ++part) {
                if (channel + part * PART >= cout) continue;
                // Volatile, one at a time: sums leave no sets of four neighbouring registers.
                const volatile float* const demods = shared_demod[0] + opaque(thread) / 32 * CHANNELS + thread % 4 * LANE_CHANNELS + part * PART;
                float d[LANE_CHANNELS];
#pragma unroll
                for (int i = 0; i < LANE_CHANNELS; ++i) d[i] = demods[i] * (FP8_X_UNIT * FP8_Y_UNIT);
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    if ((p >= 2 && m == side_in) || (p % 2 == 1 && n == side_in)) continue;
                    unsigned words[LANE_CHANNELS / 2];
#pragma unroll
                    for (int i = 0; i < LANE_CHANNELS / 2; ++i) {
                        const float* const v = sum[p] + (part * (LANE_CHANNELS / 2) + i) * 4 + half * 2;
                        words[i] = to_half2(v[0] * d[2 * i], v[1] * d[2 * i + 1]);
                    }
                    store_channels(to + (p / 2 * pitch + p % 2 * cout) + part * PART, words);
                }
            }
        }
    }
}
