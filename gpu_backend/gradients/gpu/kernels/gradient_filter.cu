// The adjoint of the filter after a transposed convolution: t[a, b] = sum_kl f[k] f[l] u[a + left - k, b + left - l].
// u is [sample][side][side][channels], t [sample][side + 1][side + 1][channels], both fp16. Macros: TAPS; STRIP_ROWS: a thread
// does four channels of so many rows of four pixels. Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define STRIP 4

extern "C" __global__ void __launch_bounds__(THREADS) gradient_filter(
    const half_bits* __restrict__ u, const float* __restrict__ filter, half_bits* __restrict__ t, int side,
    int channels, int left) {
    const int out_side = side + 1, quads = channels >> 2, strips = (out_side + STRIP - 1) / STRIP;
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= (out_side + STRIP_ROWS - 1) / STRIP_ROWS * strips * quads) return;
    const int channel = 4 * (index % quads), strip = index / quads;
    const int row = strip / strips * STRIP_ROWS, column = strip % strips * STRIP;
    u += (size_t)blockIdx.y * side * side * channels, t += (size_t)blockIdx.y * out_side * out_side * channels;
    float f[TAPS], v[STRIP_ROWS][STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    wait_for_previous_kernel();
#pragma unroll
    for (int r = 0; r < STRIP_ROWS + TAPS - 1; ++r) {
        const int in_row = row + left - (TAPS - 1) + r, safe_row = min(max(in_row, 0), side - 1);
        const bool is_row = (unsigned)in_row < (unsigned)side;
        float along[STRIP][4] = {};  // filtered along the row
#pragma unroll
        for (int j = 0; j < STRIP + TAPS - 1; ++j) {
            // No branch around the load, so that many are under way together.
            const int in_column = column + left - (TAPS - 1) + j, safe_column = min(max(in_column, 0), side - 1);
            const bool is_inside = is_row && (unsigned)in_column < (unsigned)side;
            float q[4];
            load_many(u + (safe_row * side + safe_column) * channels + channel, q);
#pragma unroll
            for (int i = 0; i < 4; ++i) q[i] = is_inside ? q[i] : 0.0f;
#pragma unroll
            for (int s = 0; s < STRIP; ++s) {
                const int l = s + TAPS - 1 - j;  // column + s + left - l is in_column
                if (l >= 0 && l < TAPS)
#pragma unroll
                    for (int i = 0; i < 4; ++i) along[s][i] = fmaf(f[l], q[i], along[s][i]);
            }
        }
#pragma unroll
        for (int k = 0; k < STRIP_ROWS; ++k) {
            const int l = k + TAPS - 1 - r;
            if (l >= 0 && l < TAPS)
#pragma unroll
                for (int s = 0; s < STRIP; ++s)
#pragma unroll
                    for (int i = 0; i < 4; ++i) v[k][s][i] = fmaf(f[l], along[s][i], v[k][s][i]);
        }
    }
#pragma unroll
    for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            if (row + k < out_side && column + s < out_side)
                store_many(t + (size_t)((row + k) * out_side + column + s) * channels + channel, v[k][s]);
}
