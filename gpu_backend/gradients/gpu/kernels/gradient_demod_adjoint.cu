// The share of every style's gradient that goes through the demodulation: gradient_i -= style_i sum_o e_o Q[o, i].
// Grid: groups of 32 channels, layers, samples; block 32 x 32.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define SHARES 32

extern "C" __global__ void __launch_bounds__(32 * SHARES) gradient_demod_adjoint(
    const float* __restrict__ styles, const float* __restrict__ squares, const float* __restrict__ demod_gradients,
    const int* __restrict__ table, float* __restrict__ style_gradients, int style_count, int demod_count) {
    __shared__ float parts[SHARES][32];
    const int* layer = table + blockIdx.y * LAYER_INTS;
    const int inputs = layer[INPUTS], outputs = layer[OUTPUTS], channel = blockIdx.x * 32 + threadIdx.x;
    wait_for_previous_kernel();
    float sum = 0.0f;
    if (channel < inputs) {
        const float* column = squares + layer[SQUARES] + channel;
        const float* e = demod_gradients + (size_t)blockIdx.z * demod_count + layer[DEMOD];
#pragma unroll 16
        for (int o = threadIdx.y; o < outputs; o += SHARES) sum = fmaf(e[o], column[(size_t)o * inputs], sum);
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || channel >= inputs) return;
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SHARES; ++i) sum += parts[i][threadIdx.x];
    const size_t place = (size_t)blockIdx.z * style_count + layer[STYLE] + channel;
    style_gradients[place] -= styles[place] * sum;
}
