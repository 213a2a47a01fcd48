// Adds up what gradient_activation left for every layer: the gradient of each style, and e = (gradient of demod) demod^3.
// Grid: groups of 32 channels, layers, samples; block 32 x 32.
#include "parts/gradient_table.cuh"

#define SHARES 32

// The sum of a column of numbers, in the threads of the first row.
__device__ __forceinline__ float column_total(float (*parts)[32], const float* from, int rows, int width, bool is_mine) {
    float sum = 0.0f;
    if (is_mine)
#pragma unroll 8
        for (int i = threadIdx.y; i < rows; i += SHARES) sum += from[(size_t)i * width];
    __syncthreads();
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SHARES; ++i) sum += parts[i][threadIdx.x];
    return sum;
}

extern "C" __global__ void __launch_bounds__(32 * SHARES) gradient_sums(
    const float* __restrict__ sums, const float* __restrict__ demods, const int* __restrict__ table,
    float* __restrict__ style_gradients, float* __restrict__ demod_gradients, int style_count, int demod_count, int sum_count) {
    __shared__ float parts[SHARES][32];
    const int* layer = table + blockIdx.y * LAYER_INTS;
    const int channel = blockIdx.x * 32 + threadIdx.x, inputs = layer[INPUTS], outputs = layer[OUTPUTS];
    sums += (size_t)blockIdx.z * sum_count;
    const size_t first_style = (size_t)blockIdx.z * style_count + layer[STYLE];
    const size_t first_demod = (size_t)blockIdx.z * demod_count + layer[DEMOD];
    const bool has_style = channel < inputs, has_demod = channel < outputs;
    const float style = column_total(parts, sums + layer[STYLE_SUMS] + channel, layer[STYLE_BLOCKS], inputs, has_style);
    const float demod = column_total(parts, sums + layer[DEMOD_SUMS] + channel, layer[DEMOD_BLOCKS], outputs, has_demod);
    if (threadIdx.y > 0) return;
    if (has_style) style_gradients[first_style + channel] = style;
    if (has_demod) {
        const float d = demods[first_demod + channel];
        demod_gradients[first_demod + channel] = demod * d * d * d;
    }
}
