// The picture of a block: toRGB of its features, and the doubled picture of the block before.
//
//     y[k] = clamp(sum_c z_c style_c W[k, c] + bias[k]) + doubled(before)[k]
//
// Pictures are fp32, [3][side][side]. `filter` has the resampling filter's taps, turned and times 2. One warp a pixel.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"

#define WARPS 8
#define COLOURS 3

extern "C" __global__ void __launch_bounds__(32 * WARPS) gradient_picture(
    const half_bits* __restrict__ z, const float* __restrict__ style, const float* __restrict__ weight,
    const float* __restrict__ bias, const float* __restrict__ filter, const float* __restrict__ before,
    float* __restrict__ picture, int side, int channels, int taps, int left, float clamp) {
    const int pixel = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (pixel >= side * side) return;
    float sum[COLOURS] = {};
    for (int channel = lane; channel < channels; channel += 32) {
        const float v = from_half(z[(size_t)pixel * channels + channel]) * style[channel];
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) sum[k] = fmaf(v, weight[k * channels + channel], sum[k]);
    }
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) sum[k] = bounded(warp_total(sum[k]) + bias[k], clamp);
    if (before) {
        const int row = pixel / side, column = pixel % side, half_side = side / 2;
        for (int i = 0; i < taps; ++i) {
            const int y = row + i - left;
            if (y < 0 || y >= side || (y & 1)) continue;
            for (int j = 0; j < taps; ++j) {
                const int x = column + j - left;
                if (x < 0 || x >= side || (x & 1)) continue;
                const float share = filter[i] * filter[j];
#pragma unroll
                for (int k = 0; k < COLOURS; ++k)
                    sum[k] = fmaf(share, before[(k * half_side + y / 2) * half_side + x / 2], sum[k]);
            }
        }
    }
    if (lane == 0)
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) picture[(k * side + pixel / side) * side + pixel % side] = sum[k];
}
