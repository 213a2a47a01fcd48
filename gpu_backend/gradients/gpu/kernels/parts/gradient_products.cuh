// A tile of a convolution as products of matrices on the tensor cores: 128 pixels x COLUMNS output channels, in steps of one tap and DEPTH input
// channels, whose pixels and weights are copied to the stages of a ring in shared memory.
//
// x is [sample][in_side][in_side][cin], W [tap][cout][cin] of fp16 numbers, cin and cout multiples of 8. Pixels of all samples are one row after
// another. Row p of `parities`, 32 integers: taps, rows, columns, r, q, then dy, dx and the index into W for each tap. A pixel (i, j) of the tile needs
// x[stride i + dy, stride j + dx] for each, and belongs to the result's pixel (out_stride i + r, out_stride j + q).
//
// Macros: COLUMNS, 128, 64 or 32; STAGES; DEPTH, 32 or 64. A stage is (128 + COLUMNS) * DEPTH fp16 numbers.
#pragma once
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    ROWS = 128,
    WARP_ROWS = COLUMNS == 128 ? 64 : 32,
    WARP_COLUMNS = COLUMNS == 128 ? 64 : COLUMNS,
    BLOCKS = COLUMNS == 128 ? 2 : 3,  // of a multiprocessor
    ROW_WARPS = ROWS / WARP_ROWS,
    THREADS = 32 * ROW_WARPS * (COLUMNS / WARP_COLUMNS),
    STAGE_NBYTES = (ROWS + COLUMNS) * DEPTH * 2,
    LOAD_CHUNKS = DEPTH / 8,  // of 16 bytes in a row of a stage
    LOAD_ROWS = THREADS / LOAD_CHUNKS,
    LOADS = ROWS / LOAD_ROWS,
    WEIGHT_LOADS = COLUMNS / LOAD_ROWS,
    OUTSIDE = 0x7fff7fff,
};

// Pixels and weights of a tile, of which each thread copies the same rows at every step.
struct TileSource {
    const half_bits* x;
    const half_bits* weight;
    const int* parity;
    int in_side, cin, cout, first_channel;
    int chunk, load_row;
    int places[LOADS], origins[LOADS];  // row and column in 16 bits each; the pixel's first channel

    __device__ __forceinline__ TileSource(
        const half_bits* x, const half_bits* weight, const int* parity, int in_side, int cin, int cout, int first_pixel, int first_channel,
        int in_stride, int samples)
        : x(x), weight(weight), parity(parity), in_side(in_side), cin(cin), cout(cout), first_channel(first_channel),
          chunk(threadIdx.x % LOAD_CHUNKS), load_row(threadIdx.x / LOAD_CHUNKS) {
        const int columns = parity[2], pixels = parity[1] * columns;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int index = first_pixel + load_row + LOAD_ROWS * i, sample = index / pixels, pixel = index - sample * pixels;
            const int y = pixel / columns * in_stride, column = pixel % columns * in_stride;
            places[i] = index < samples * pixels ? y << 16 | column : OUTSIDE;
            origins[i] = ((sample * in_side + y) * in_side + column) * cin;
        }
    }

    // Copies what a tap needs of DEPTH channels, the `depth`-th of them, by `copy`, which is copy_async or does what it does.
    template <typename Copy>
    __device__ __forceinline__ void load(unsigned target, int tap, int depth, Copy copy) const {
        const int k = depth * DEPTH + chunk * 8;
        const int dy = parity[5 + 3 * tap], dx = parity[6 + 3 * tap], index = parity[7 + 3 * tap];
        const int shift = (dy * in_side + dx) * cin + k;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
            const int y = (places[i] >> 16) + dy, column = (places[i] & 0xffff) + dx;
            const bool is_inside = k < cin && (unsigned)y < (unsigned)in_side && (unsigned)column < (unsigned)in_side;
            copy(target + place, is_inside ? x + (origins[i] + shift) : x, is_inside);
        }
#pragma unroll
        for (int i = 0; i < WEIGHT_LOADS; ++i) {
            const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
            const int channel = first_channel + row;
            const bool is_weight = k < cin && channel < cout;
            copy(target + ROWS * DEPTH * 2 + place, is_weight ? weight + ((size_t)(index * cout + channel) * cin + k) : weight, is_weight);
        }
    }
};

// Adds the products of steps first to last - 1. `load(step, address)` copies a step to a stage.
template <typename Load>
__device__ __forceinline__ void add_products(
    float (&acc)[WARP_ROWS / 16][WARP_COLUMNS / 8][4], unsigned base, int warp_row, int warp_column, int first, int last, Load load) {
    const int lane = threadIdx.x & 31;
    auto load_stage = [&](int step, int stage) {
        if (step < last) load(step, base + stage * STAGE_NBYTES);
        commit_copies();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) load_stage(first + i, i);
    int stage = 0;
    for (int step = first; step < last; ++step) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        load_stage(step + STAGES - 1, stage == 0 ? STAGES - 1 : stage - 1);
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
}
