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
#include "parts/gradient_products.cuh"
#include "parts/discriminator_end.cuh"

enum : int {
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

    const TileSource source(x, weight, parity, in_side, cin, cout, first_pixel, first_channel, in_stride, samples);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = warp % ROW_WARPS * WARP_ROWS, warp_column = warp / ROW_WARPS * WARP_COLUMNS;
    wait_for_previous_kernel();
    float acc[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    add_products(acc, shared_address(shared), warp_row, warp_column, 0, steps, [&](int step, unsigned stage) {
        const int depth = step / taps;
        source.load(stage, step - depth * taps, depth, copy_cached);
    });
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
            float v[1][8];
            load_many(ends + row * END_PITCH + group * 8, v[0]);
            end_channels(v, sample, y, column, out_side, channel, cout, DISCRIMINATOR_END_ARGUMENTS);
        }
    }
}
