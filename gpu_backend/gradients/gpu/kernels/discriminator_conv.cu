// A convolution of a discriminator, or an adjoint, with its end: the products of gradient_conv, all of K in one block, whose sums go on as
// fp16 activations (parts/discriminator_end.cuh) without a way through memory as fp32.
//
// x, W and `parities` are those of gradient_conv; what is written and what is added is [sample][out_side][out_side][cout].
//
// Taps of a group of channels follow each other, and copies go through the L1 cache: all taps of a row read the same lines, which
// of few channels would otherwise come from the L2 cache nine times and take longer than the products.
//
// Macros: COLUMNS, 128, 64 or 32 output channels of a tile; STAGES of the pipeline; DEPTH, 32 or 64 channels of a stage, of which
// each has (128 + COLUMNS) * DEPTH fp16 numbers in shared memory; TAPS, see parts/discriminator_end.cuh.
//
// Grid: tiles of the samples' pixels, tiles of channels, parities.
#define HALF 1
#define USE_WGMMA 0
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_end.cuh"

enum : int {
    ROWS = 128,
    WARP_ROWS = COLUMNS == 128 ? 64 : 32,
    WARP_COLUMNS = COLUMNS == 128 ? 64 : COLUMNS,
    BLOCKS = COLUMNS == 128 ? 2 : 3,
    ROW_WARPS = ROWS / WARP_ROWS,
    THREADS = 32 * ROW_WARPS * (COLUMNS / WARP_COLUMNS),
    STAGE_NBYTES = (ROWS + COLUMNS) * DEPTH * 2,
    CHUNKS = DEPTH / 8,  // of 16 bytes in a row of a stage
    LOAD_ROWS = THREADS / CHUNKS,
    LOADS = ROWS / LOAD_ROWS,
    WEIGHT_LOADS = COLUMNS / LOAD_ROWS,
    OUTSIDE = 0x7fff7fff,
    // Sums of one fragment of each warp are ended together; they meet in shared memory, where the stages were.
    END_ROWS = ROW_WARPS * 16,
    END_PITCH = COLUMNS + 8,  // so that a warp's rows are in different banks
    GROUPS = COLUMNS / 8,     // of channels that a thread ends
    TURNS = END_ROWS * GROUPS / THREADS,
};
static_assert(STAGES * STAGE_NBYTES >= END_ROWS * END_PITCH * 4, "the sums find room where stages were");

// copy_async through the L1 cache.
__device__ __forceinline__ void copy_cached(unsigned target, const void* source, bool wanted) {
    if constexpr (LEVEL >= 800) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(source), "r"(wanted ? 16 : 0) : "memory");
    } else {
        copy_async(target, source, wanted);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) discriminator_conv(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, DISCRIMINATOR_END_PARAMETERS,
#if TAPS
    DISCRIMINATOR_JOIN_PARAMETERS,
#endif
    const int* __restrict__ parities, int in_side, int cin, int cout, int in_stride, int out_stride, int out_side, int samples) {
    extern __shared__ uint4 shared[];
    const int* parity = parities + blockIdx.z * 32;
    const int rows = parity[1], columns = parity[2], pixels = rows * columns, all_pixels = samples * pixels;
    const int first_pixel = blockIdx.x * ROWS, first_channel = blockIdx.y * COLUMNS;
    if (first_pixel >= all_pixels) return;
    const int taps = parity[0], steps = taps * ((cin + DEPTH - 1) / DEPTH);

    const unsigned base = shared_address(shared);
    const int chunk = threadIdx.x % CHUNKS, load_row = threadIdx.x / CHUNKS;
    int places[LOADS], origins[LOADS];  // row and column in 16 bits each; the pixel's first channel
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const int index = first_pixel + load_row + LOAD_ROWS * i, sample = index / pixels, pixel = index - sample * pixels;
        const int y = pixel / columns * in_stride, column = pixel % columns * in_stride;
        places[i] = index < all_pixels ? y << 16 | column : OUTSIDE;
        origins[i] = ((sample * in_side + y) * in_side + column) * cin;
    }

    auto load = [&](int step, int stage) {
        if (step < steps) {
            const int depth = step / taps, tap = step - depth * taps, k = depth * DEPTH + chunk * 8;
            const int dy = parity[5 + 3 * tap], dx = parity[6 + 3 * tap], index = parity[7 + 3 * tap];
            const unsigned target = base + stage * STAGE_NBYTES;
            const int shift = (dy * in_side + dx) * cin + k;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
                const int y = (places[i] >> 16) + dy, column = (places[i] & 0xffff) + dx;
                const bool is_inside = k < cin && (unsigned)y < (unsigned)in_side && (unsigned)column < (unsigned)in_side;
                copy_cached(target + place, is_inside ? x + (origins[i] + shift) : x, is_inside);
            }
#pragma unroll
            for (int i = 0; i < WEIGHT_LOADS; ++i) {
                const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
                const int channel = first_channel + row;
                const bool is_weight = k < cin && channel < cout;
                copy_cached(
                    target + ROWS * DEPTH * 2 + place,
                    is_weight ? weight + ((size_t)(index * cout + channel) * cin + k) : weight, is_weight);
            }
        }
        commit_copies();
    };

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = warp % ROW_WARPS * WARP_ROWS, warp_column = warp / ROW_WARPS * WARP_COLUMNS;
    wait_for_previous_kernel();
    float acc[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) load(i, i);
    int stage = 0;
    for (int step = 0; step < steps; ++step) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        const int next = stage == 0 ? STAGES - 1 : stage - 1;
        load(step + STAGES - 1, next);
        const unsigned a_base = base + stage * STAGE_NBYTES, b_base = a_base + ROWS * DEPTH * 2;
#pragma unroll
        for (int kk = 0; kk < DEPTH / 16; ++kk) {
            unsigned a[WARP_ROWS / 16][4], b[WARP_COLUMNS / 16][4];
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; ++i) {
                const int row = warp_row + i * 16 + (lane & 15);
                ldmatrix_x4(a[i], a_base + row * DEPTH * 2 + swizzle(kk * 2 + (lane >> 4), row) * 16);
            }
#pragma unroll
            for (int i = 0; i < WARP_COLUMNS / 16; ++i) {
                const int row = warp_column + i * 16 + (lane & 7) + ((lane >> 4) << 3);
                ldmatrix_x4(b[i], b_base + row * DEPTH * 2 + swizzle(kk * 2 + ((lane >> 3) & 1), row) * 16);
            }
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
                for (int j = 0; j < WARP_COLUMNS / 8; ++j) mma_m16n8k16(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }
    wait_copies<0>();

    float* const ends = reinterpret_cast<float*>(shared);
    const int end_row = warp % ROW_WARPS * 16 + (lane >> 2), end_column = warp_column + 2 * (lane & 3);
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; ++i) {
        __syncthreads();  // the stages, or the fragment before, are read
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int j = 0; j < WARP_COLUMNS / 8; ++j)
                *reinterpret_cast<float2*>(ends + (end_row + half * 8) * END_PITCH + end_column + j * 8) =
                    make_float2(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
        __syncthreads();
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int item = turn * THREADS + threadIdx.x, row = item / GROUPS, group = item % GROUPS;
            const int index = first_pixel + row / 16 * WARP_ROWS + i * 16 + row % 16, channel = first_channel + group * 8;
            if (index >= all_pixels || channel >= cout) continue;
            const int sample = index / pixels, pixel = index - sample * pixels;
            const int y = pixel / columns * out_stride + parity[3], column = pixel % columns * out_stride + parity[4];
            float v[8];
            load_many(ends + row * END_PITCH + group * 8, v);
            end_channels(v, sample, y, column, out_side, channel, cout, DISCRIMINATOR_END_ARGUMENTS);
        }
    }
}
