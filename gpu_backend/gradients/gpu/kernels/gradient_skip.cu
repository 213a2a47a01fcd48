// The end of a resnet's block: its last layer's z and its skip, the doubled products of a 1 x 1 convolution of the block's input:
//
//     h[y, x] = z[y, x] + unit * sum_ij f[i] f[j] sums[(y + i - left) / 2, (x + j - left) / 2]  where both are whole,   x = h * next_style
//
// sums is [sample][side / 2][side / 2][channels] fp32, one slice; z, h and the next convolution's input x are [sample][side][side][channels]
// fp16. `filter` as in gradient_picture. Macro TAPS: of the filter. A thread does four channels of a pixel. Grid: threads, samples.
#define HALF 1
#include "parts/previous_kernel.cuh"
#include "parts/types.cuh"

#define THREADS 128
#define MOST_PAIRS ((TAPS + 1) / 2)  // of taps and samples along an axis

extern "C" __global__ void __launch_bounds__(THREADS) gradient_skip(
    const float* __restrict__ sums, const float* __restrict__ filter, const half_bits* __restrict__ z,
    const float* __restrict__ next_style, half_bits* __restrict__ h, half_bits* __restrict__ x, int side, int channels, int left,
    int style_count, float unit) {
    const int quads = channels >> 2, half_side = side / 2, sample = blockIdx.y;
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= side * side * quads) return;
    const int channel = 4 * (index % quads), pixel = index / quads, row = pixel / side - left, column = pixel % side - left;
    const int first_row = row & 1, first_column = column & 1;  // the first tap that meets a sample
    const float* from = sums + (size_t)sample * half_side * half_side * channels + channel;
    const size_t place = ((size_t)sample * side * side + pixel) * channels + channel;
    wait_for_previous_kernel();
    float out[4], doubled[4] = {};
    load_many(z + place, out);
#pragma unroll
    for (int i = 0; i < MOST_PAIRS; ++i) {
        const int tap_row = first_row + 2 * i, in_row = (row + tap_row) >> 1, safe_row = min(max(in_row, 0), half_side - 1);
        const float row_share = tap_row < TAPS && in_row == safe_row ? filter[tap_row] : 0.0f;
#pragma unroll
        for (int j = 0; j < MOST_PAIRS; ++j) {
            // No branch around the load, so that many are under way together.
            const int tap = first_column + 2 * j, in_column = (column + tap) >> 1, safe_column = min(max(in_column, 0), half_side - 1);
            const float share = tap < TAPS && in_column == safe_column ? row_share * filter[tap] : 0.0f;
            float q[4];
            load_many(from + (safe_row * half_side + safe_column) * channels, q);
#pragma unroll
            for (int k = 0; k < 4; ++k) doubled[k] = fmaf(share, q[k], doubled[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] = fmaf(unit, doubled[k], out[k]);
    store_many(h + place, out);
    if (!x) return;
    float style[4];
    load_many(next_style + (size_t)sample * style_count + channel, style);
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] *= style[k];
    store_many(x + place, out);
}
