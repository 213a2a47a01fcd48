// The adjoint of the filter after a transposed convolution: t[a, b] = sum_kl f[k] f[l] u[a + left - k, b + left - l].
// u is [sample][side][side][channels], t [sample][side + 1][side + 1][channels], both fp16. Macros: TAPS; STRIP_ROWS: a thread
// does four channels of so many rows of four pixels. Grid: blocks (parts/gradient_strips.cuh), samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#include "parts/gradient_strips.cuh"

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) gradient_filter(
    const half_bits* __restrict__ u, const float* __restrict__ filter, half_bits* __restrict__ t, int side,
    int channels, int left) {
    const int out_side = side + 1;
    const Strip strip = own_strip(out_side, channels);
    if (!strip.is_there) return;
    const int channel = strip.channel, row = strip.row, column = strip.column;
    u += (size_t)blockIdx.y * side * side * channels, t += (size_t)blockIdx.y * out_side * out_side * channels;
    float f[TAPS], v[STRIP_ROWS][STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[TAPS - 1 - k];
    wait_for_previous_kernel();
    filter_strip(v, f, u + channel, row + left - (TAPS - 1), column + left - (TAPS - 1), side, channels);
#pragma unroll
    for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            if (row + k < out_side && column + s < out_side)
                store_many(t + (size_t)((row + k) * out_side + column + s) * channels + channel, v[k][s]);
}
