// The adjoint of the filter before a convolution with stride 2, and the way back through the activation before it:
//
//     u[y, x] = (1 where z[y, x] > 0, else 0.2) * sum_kl f[k] f[l] t[y + k - left, x + l - left]
//
// t is [sample][side + 1][side + 1][channels], z and u are [sample][side][side][channels], all fp16; side is a multiple of four. Macros: TAPS;
// STRIP_ROWS: a thread does four channels of so many rows of four pixels. Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

enum : int { THREADS = 128, STRIP = 4 };  // more threads would leave a multiprocessor one block
#define SLOPE 0.2f

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_filter_adjoint(
    const half_bits* __restrict__ t, const float* __restrict__ filter, const half_bits* __restrict__ z, half_bits* __restrict__ u, int side,
    int channels, int left) {
    const int in_side = side + 1, quads = channels >> 2, strips = side / STRIP;
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= side / STRIP_ROWS * strips * quads) return;
    const int channel = 4 * (index % quads), strip = index / quads;
    const int row = strip / strips * STRIP_ROWS, column = strip % strips * STRIP;
    const size_t first = (size_t)blockIdx.y * side * side * channels + channel;
    t += (size_t)blockIdx.y * in_side * in_side * channels + channel;
    float f[TAPS], v[STRIP_ROWS][STRIP][4] = {};
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    wait_for_previous_kernel();
#pragma unroll
    for (int r = 0; r < STRIP_ROWS + TAPS - 1; ++r) {
        const int in_row = row + r - left, safe_row = min(max(in_row, 0), side);
        const bool is_row = in_row == safe_row;
        float along[STRIP][4] = {};  // filtered along the row
#pragma unroll
        for (int j = 0; j < STRIP + TAPS - 1; ++j) {
            // No branch around the load, so that many are under way together.
            const int in_column = column + j - left, safe_column = min(max(in_column, 0), side);
            const bool is_inside = is_row && in_column == safe_column;
            float q[4];
            load_many(t + (size_t)(safe_row * in_side + safe_column) * channels, q);
#pragma unroll
            for (int i = 0; i < 4; ++i) q[i] = is_inside ? q[i] : 0.0f;
#pragma unroll
            for (int s = 0; s < STRIP; ++s)
                if (j - s >= 0 && j - s < TAPS)
#pragma unroll
                    for (int i = 0; i < 4; ++i) along[s][i] = fmaf(f[j - s], q[i], along[s][i]);
        }
#pragma unroll
        for (int k = 0; k < STRIP_ROWS; ++k)
            if (r - k >= 0 && r - k < TAPS)
#pragma unroll
                for (int s = 0; s < STRIP; ++s)
#pragma unroll
                    for (int i = 0; i < 4; ++i) v[k][s][i] = fmaf(f[r - k], along[s][i], v[k][s][i]);
    }
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
