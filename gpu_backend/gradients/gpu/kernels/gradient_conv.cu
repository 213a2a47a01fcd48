// Every convolution of a step, forward and backward, as products of matrices on the tensor cores:
//
//     sums[slice][sample][out(i, j)][o] = sum over taps t and channels c of the slice of  x[stride i + dy_t, stride j + dx_t, c] W_t[o, c]
//
// 3 x 3 convolution     stride 1, nine taps; backward the weights are turned by half a turn, inputs and outputs exchanged
// transposed, stride 2  four parities of output rows and columns with 4, 2, 2 and 1 taps: out(i, j) = (2 i + r, 2 j + q)
// its adjoint           stride 2, nine taps
//
// x is [sample][in_side][in_side][cin], W [tap][cout][cin] of fp16 numbers (cin and cout multiples of 8), sums are fp32. K (taps x
// cin) is cut into `slices`; what reads the sums adds them, so that no block waits for another. Pixels of all samples are one row after another.
//
// Macros: COLUMNS, 128, 64 or 32 output channels of a tile; STAGES, 2 or 3 of the pipeline; DEPTH, 32 or 64 channels of a stage, of which
// each has (128 + COLUMNS) * DEPTH fp16 numbers in shared memory.
//
// Row p of `parities`, 32 integers: taps, rows, columns, r, q, then dy, dx and the index into W for each tap.
// Grid: tiles of the samples' pixels, tiles of channels, parities x slices.
#define HALF 1
#define USE_WGMMA 0
#define ACTIVATION 0
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/previous_kernel.cuh"

#define ROWS 128
#if COLUMNS == 128
#define WARP_ROWS 64
#define WARP_COLUMNS 64
#define BLOCKS 2
#else
#define WARP_ROWS 32
#define WARP_COLUMNS COLUMNS
#define BLOCKS 3
#endif
#define ROW_WARPS (ROWS / WARP_ROWS)
#define THREADS (32 * ROW_WARPS * (COLUMNS / WARP_COLUMNS))
#define STAGE_NBYTES ((ROWS + COLUMNS) * DEPTH * 2)
#define CHUNKS (DEPTH / 8)  // of 16 bytes in a row of a stage
#define LOAD_ROWS (THREADS / CHUNKS)
#define LOADS (ROWS / LOAD_ROWS)
#define WEIGHT_LOADS (COLUMNS / LOAD_ROWS)
#define OUTSIDE 0x7fff7fff

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gradient_conv(
    const half_bits* __restrict__ x, const half_bits* __restrict__ weight, float* __restrict__ sums,
    const int* __restrict__ parities, int in_side, int cin, int cout, int in_stride, int out_stride, int out_side, int slices,
    int samples) {
    extern __shared__ uint4 shared[];
    const int slice = blockIdx.z % slices;
    const int* parity = parities + blockIdx.z / slices * 32;
    const int rows = parity[1], columns = parity[2], pixels = rows * columns, all_pixels = samples * pixels;
    const int first_pixel = blockIdx.x * ROWS, first_channel = blockIdx.y * COLUMNS;
    if (first_pixel >= all_pixels) return;
    const int chunks = (cin + DEPTH - 1) / DEPTH, steps = parity[0] * chunks;
    const int first = steps * slice / slices, last = steps * (slice + 1) / slices;

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
        if (step < last) {
            const int tap = step / chunks, k = (step - tap * chunks) * DEPTH + chunk * 8;
            const int dy = parity[5 + 3 * tap], dx = parity[6 + 3 * tap], index = parity[7 + 3 * tap];
            const unsigned target = base + stage * STAGE_NBYTES;
            const int shift = (dy * in_side + dx) * cin + k;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
                const int y = (places[i] >> 16) + dy, column = (places[i] & 0xffff) + dx;
                const bool is_inside = k < cin && (unsigned)y < (unsigned)in_side && (unsigned)column < (unsigned)in_side;
                copy_async(target + place, is_inside ? x + (origins[i] + shift) : x, is_inside);
            }
#pragma unroll
            for (int i = 0; i < WEIGHT_LOADS; ++i) {
                const int row = load_row + LOAD_ROWS * i, place = row * DEPTH * 2 + swizzle(chunk, row) * 16;
                const int channel = first_channel + row;
                const bool is_weight = k < cin && channel < cout;
                copy_async(
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
    for (int i = 0; i < STAGES - 1; ++i) load(first + i, i);
    int stage = 0;
    for (int step = first; step < last; ++step) {
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

    float* to = sums + (size_t)slice * samples * out_side * out_side * cout;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int index = first_pixel + warp_row + i * 16 + half * 8 + (lane >> 2);
            if (index >= all_pixels) continue;
            const int sample = index / pixels, pixel = index - sample * pixels;
            const int y = pixel / columns * out_stride + parity[3], column = pixel % columns * out_stride + parity[4];
            float* row = to + ((size_t)sample * out_side * out_side + y * out_side + column) * cout;
#pragma unroll
            for (int j = 0; j < WARP_COLUMNS / 8; ++j) {
                const int channel = first_channel + warp_column + j * 8 + 2 * (lane & 3);
                if (channel < cout)
                    *reinterpret_cast<float2*>(row + channel) = make_float2(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
            }
        }
}
