// Styles of layers: style = A w + a, one warp a row of A. Grid: groups of 8 rows, layers, samples.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define WARPS 8

extern "C" __global__ void __launch_bounds__(32 * WARPS) gradient_styles(
    const float* __restrict__ ws, const float* __restrict__ affine, const float* __restrict__ affine_bias,
    const int* __restrict__ table, float* __restrict__ styles, int w_dim, int w_rows, int style_count) {
    const int* layer = table + blockIdx.y * LAYER_INTS;
    const int channel = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (channel >= layer[INPUTS]) return;
    const float bias = affine_bias[layer[AFFINE] + channel];
    const float* w = ws + (blockIdx.z * w_rows + layer[W_ROW]) * w_dim;
    const float* row = affine + (size_t)(layer[AFFINE] + channel) * w_dim;
    wait_for_previous_kernel();
    float sum = 0.0f;
#pragma unroll 16
    for (int i = lane; i < w_dim; i += 32) sum = fmaf(row[i], w[i], sum);
    sum = warp_total(sum);
    if (lane == 0) styles[(size_t)blockIdx.z * style_count + layer[STYLE] + channel] = sum + bias;
}
