// The adjoint of doubling a block's skip: from the gradient of the block's output at `side` to that of the 1 x 1 products at half of it.
//
//     to[y, x] = sum_ij f[i] f[j] from[2 y + left - i, 2 x + left - j]
//
// Both are [sample][row][column][channels] fp16. `filter` as in gradient_picture. Macro TAPS: of the filter. A thread does four channels of
// a pixel. Grid: threads, samples.
#define HALF 1
#include "parts/previous_kernel.cuh"
#include "parts/types.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) gradient_skip_adjoint(
    const half_bits* __restrict__ from, const float* __restrict__ filter, half_bits* __restrict__ to, int side, int channels, int left) {
    const int quads = channels >> 2, half_side = side / 2;
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= half_side * half_side * quads) return;
    const int channel = 4 * (index % quads), pixel = index / quads;
    const int row = 2 * (pixel / half_side) + left, column = 2 * (pixel % half_side) + left;
    from += (size_t)blockIdx.y * side * side * channels + channel;
    wait_for_previous_kernel();
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        const int in_row = row - i, safe_row = min(max(in_row, 0), side - 1);
        const float row_share = in_row == safe_row ? filter[i] : 0.0f;
#pragma unroll
        for (int j = 0; j < TAPS; ++j) {
            // No branch around the load, so that many are under way together.
            const int in_column = column - j, safe_column = min(max(in_column, 0), side - 1);
            const float share = in_column == safe_column ? row_share * filter[j] : 0.0f;
            float q[4];
            load_many(from + (safe_row * side + safe_column) * channels, q);
#pragma unroll
            for (int k = 0; k < 4; ++k) sum[k] = fmaf(share, q[k], sum[k]);
        }
    }
    store_many(to + ((size_t)blockIdx.y * half_side * half_side + pixel) * channels + channel, sum);
}
