// The adjoint of the filter after a transposed convolution: t[a, b] = sum_kl f[k] f[l] u[a + left - k, b + left - l].
// u is [sample][side][side][channels], t [sample][side + 1][side + 1][channels], both fp16. Macros: TAPS; STRIP_ROWS: a thread
// does four channels of so many rows of four pixels. Grid: blocks (parts/gradient_strips.cuh), samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#include "parts/gradient_strips.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) gradient_filter(
    const half_bits* __restrict__ u, const float* __restrict__ filter, half_bits* __restrict__ t, int side,
    int channels, int left) {
    const int out_side = side + 1;
    const Strip strip = own_strip(out_side, channels);
    if (!strip.is_there) return;
    const int channel = strip.channel, row = strip.row, column = strip.column;
    u += (size_t)blockIdx.y * side * side * channels, t += (size_t)blockIdx.y * out_side * out_side * channels;
    float f[TAPS], v[STRIP_ROWS][STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    wait_for_previous_kernel();
    // Along columns first: a thread has fewer rows than columns.
#pragma unroll
    for (int j = 0; j < STRIP + TAPS - 1; ++j) {
        const int in_column = column + left - (TAPS - 1) + j, safe_column = min(max(in_column, 0), side - 1);
        const bool is_column = (unsigned)in_column < (unsigned)side;
        float along[STRIP_ROWS][4] = {};
#pragma unroll
        for (int r = 0; r < STRIP_ROWS + TAPS - 1; ++r) {
            // No branch around the load, so that many are under way together.
            const int in_row = row + left - (TAPS - 1) + r, safe_row = min(max(in_row, 0), side - 1);
            const bool is_inside = is_column && (unsigned)in_row < (unsigned)side;
            uint2 words = *reinterpret_cast<const uint2*>(u + (safe_row * side + safe_column) * channels + channel);
            if (!is_inside) words = make_uint2(0, 0);
            float q[4];
            from_half2(words.x, q[0], q[1]), from_half2(words.y, q[2], q[3]);
#pragma unroll
            for (int k = 0; k < STRIP_ROWS; ++k) {
                const int l = k + TAPS - 1 - r;  // row + k + left - l is in_row
                if (l >= 0 && l < TAPS)
#pragma unroll
                    for (int i = 0; i < 4; ++i) along[k][i] = fmaf(f[l], q[i], along[k][i]);
            }
        }
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            const int l = s + TAPS - 1 - j;
            if (l >= 0 && l < TAPS)
#pragma unroll
                for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
                    for (int i = 0; i < 4; ++i) v[k][s][i] = fmaf(f[l], along[k][i], v[k][s][i]);
        }
    }
#pragma unroll
    for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
        for (int s = 0; s < STRIP; ++s)
            if (row + k < out_side && column + s < out_side)
                store_many(t + (size_t)((row + k) * out_side + column + s) * channels + channel, v[k][s]);
}
