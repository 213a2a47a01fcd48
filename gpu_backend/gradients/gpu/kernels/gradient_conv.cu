// Every convolution of a step, forward and backward, as products of matrices on the tensor cores:
//
//     sums[slice][sample][out(i, j)][o] = sum over taps t and channels c of the slice of  x[stride i + dy_t, stride j + dx_t, c] W_t[o, c]
//
// 3 x 3 convolution     stride 1, nine taps; backward the weights are turned by half a turn, inputs and outputs exchanged
// transposed, stride 2  four parities of output rows and columns with 4, 2, 2 and 1 taps: out(i, j) = (2 i + r, 2 j + q)
// its adjoint           stride 2, nine taps
//
// x, W, `parities` and macros are those of parts/gradient_products.cuh, sums are fp32. K (taps x cin) is cut into `slices`; what reads the sums adds
// them, so that no block waits for another.
//
// Grid: tiles of the samples' pixels, tiles of channels, parities x slices.
#define HALF 1
#define USE_WGMMA 0
#define ACTIVATION 0
#include "parts/gradient_products.cuh"

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
    const int depths = (cin + DEPTH - 1) / DEPTH, steps = parity[0] * depths;
    const int first = steps * slice / slices, last = steps * (slice + 1) / slices;

    const TileSource source(x, weight, parity, in_side, cin, cout, first_pixel, first_channel, in_stride, samples);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = warp % ROW_WARPS * WARP_ROWS, warp_column = warp / ROW_WARPS * WARP_COLUMNS;
    wait_for_previous_kernel();
    float acc[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    add_products(acc, shared_address(shared), warp_row, warp_column, first, last, [&](int step, unsigned stage) {
        const int tap = step / depths;
        source.load(stage, tap, step - tap * depths, copy_async);
    });

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
