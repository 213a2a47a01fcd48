// The adjoint of the filter before a convolution with stride 2, and the way back through the activation before it:
//
//     u[y, x] = (1 where z[y, x] > 0, else 0.2) * sum_kl f[k] f[l] t[y + k - left, x + l - left]
//
// t is [sample][side + 1][side + 1][channels], z and u are [sample][side][side][channels], all fp16; side is a multiple of four. Macros: TAPS;
// STRIP_ROWS: a thread does four channels of so many rows of four pixels. Grid: blocks (parts/gradient_strips.cuh), samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#include "parts/gradient_strips.cuh"
#define SLOPE 0.2f

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_filter_adjoint(
    const half_bits* __restrict__ t, const float* __restrict__ filter, const half_bits* __restrict__ z, half_bits* __restrict__ u, int side,
    int channels, int left) {
    const int in_side = side + 1;
    const Strip strip = own_strip(side, channels);
    if (!strip.is_there) return;
    const int channel = strip.channel, row = strip.row, column = strip.column;
    const size_t first = (size_t)blockIdx.y * side * side * channels + channel;
    t += (size_t)blockIdx.y * in_side * in_side * channels + channel;
    float f[TAPS], v[STRIP_ROWS][STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    wait_for_previous_kernel();
    filter_strip(v, f, t, row - left, column - left, in_side, channels);
#pragma unroll
    for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            const size_t place = first + (size_t)((row + k) * side + column + s) * channels;
            float q[4];
            load_many(z + place, q);
#pragma unroll
            for (int i = 0; i < 4; ++i) v[k][s][i] *= q[i] > 0.0f ? 1.0f : SLOPE;
            store_many(u + place, v[k][s]);
        }
}
