// Adds up what gradient_activation left for every layer: the gradient of each style, and e = (gradient of demod) demod^3.
// Grid: groups of 32 channels, layers, samples; block 32 x 32.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define SHARES 32
#define AT_ONCE 12

// This thread's share of a column of numbers. Loads beyond the last row are left out without a branch, so that AT_ONCE are under way together.
__device__ __forceinline__ float share_of_column(const float* from, int rows, int width) {
    float sum = 0.0f;
    for (int first = threadIdx.y; first < rows; first += AT_ONCE * SHARES) {
        float v[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) v[i] = first + i * SHARES < rows ? from[(size_t)(first + i * SHARES) * width] : 0.0f;
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) sum += v[i];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(32 * SHARES) gradient_sums(
    const float* __restrict__ sums, const float* __restrict__ demods, const int* __restrict__ table,
    float* __restrict__ style_gradients, float* __restrict__ demod_gradients, int style_count, int demod_count, int sum_count) {
    __shared__ float parts[2][SHARES][33];  // a column of padding, so that warps read across rows from different banks
    const int* layer = table + blockIdx.y * LAYER_INTS;
    const int channel = blockIdx.x * 32 + threadIdx.x, inputs = layer[INPUTS], outputs = layer[OUTPUTS];
    sums += (size_t)blockIdx.z * sum_count;
    const size_t first_style = (size_t)blockIdx.z * style_count + layer[STYLE];
    const size_t first_demod = (size_t)blockIdx.z * demod_count + layer[DEMOD];
    const bool has_style = channel < inputs, has_demod = channel < outputs;
    wait_for_previous_kernel();
    parts[0][threadIdx.y][threadIdx.x] = has_style ? share_of_column(sums + layer[STYLE_SUMS] + channel, layer[STYLE_BLOCKS], inputs) : 0.0f;
    parts[1][threadIdx.y][threadIdx.x] = has_demod ? share_of_column(sums + layer[DEMOD_SUMS] + channel, layer[DEMOD_BLOCKS], outputs) : 0.0f;
    __syncthreads();
    // Each warp adds up a channel.
    const float style = warp_total(parts[0][threadIdx.x][threadIdx.y]), demod = warp_total(parts[1][threadIdx.x][threadIdx.y]);
    const int own = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x > 0) return;
    if (own < inputs) style_gradients[first_style + own] = style;
    if (own < outputs) {
        const float d = demods[first_demod + own];
        demod_gradients[first_demod + own] = demod * d * d * d;
    }
}
