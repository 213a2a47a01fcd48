// The adjoint of the filter after a transposed convolution: t[a, b] = sum_kl f[k] f[l] u[a + left - k, b + left - l].
// u is [sample][side][side][channels], t [sample][side + 1][side + 1][channels], both fp16. Macro TAPS. A thread does four channels of a strip
// of four pixels. Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"

#define THREADS 256
#define STRIP 4

extern "C" __global__ void __launch_bounds__(THREADS) gradient_filter(
    const half_bits* __restrict__ u, const float* __restrict__ filter, half_bits* __restrict__ t, int side,
    int channels, int left) {
    const int out_side = side + 1, quads = channels >> 2, strips = (out_side + STRIP - 1) / STRIP;
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= out_side * strips * quads) return;
    const int channel = 4 * (index % quads), strip = index / quads;
    const int row = strip / strips, column = strip % strips * STRIP;
    u += (size_t)blockIdx.y * side * side * channels, t += (size_t)blockIdx.y * out_side * out_side * channels;
    float f[TAPS], v[STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
#pragma unroll
    for (int j = 0; j < STRIP + TAPS - 1; ++j) {
        const int in_column = column + left - (TAPS - 1) + j;
        float filtered[4] = {};
#pragma unroll
        for (int k = 0; k < TAPS; ++k) {
            const int in_row = row + left - k;
            if ((unsigned)in_row < (unsigned)side && (unsigned)in_column < (unsigned)side) {
                float q[4];
                load_many(u + (size_t)(in_row * side + in_column) * channels + channel, q);
#pragma unroll
                for (int i = 0; i < 4; ++i) filtered[i] = fmaf(f[k], q[i], filtered[i]);
            }
        }
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            const int l = s + TAPS - 1 - j;  // column + s + left - l is in_column
            if (l >= 0 && l < TAPS)
#pragma unroll
                for (int i = 0; i < 4; ++i) v[s][i] = fmaf(f[l], filtered[i], v[s][i]);
        }
    }
#pragma unroll
    for (int s = 0; s < STRIP; ++s)
        if (column + s < out_side) store_many(t + (size_t)(row * out_side + column + s) * channels + channel, v[s]);
}
