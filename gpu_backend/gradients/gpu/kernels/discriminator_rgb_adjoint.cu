// The adjoint of the first layer of a discriminator: to[k] = sum_c W[k, c] u[c] / (level * scale[sample]).
//
// u is [sample][side][side][channels] fp16, W fp32, to [sample][COLOURS][side][side] fp32. Macro COLOURS. Four threads a pixel. Grid: groups of
// 64 pixels, samples; 4 * COLOURS bytes of dynamic shared memory for each channel.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

enum : int { THREADS = 256, LANES = 4 };

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_rgb_adjoint(
    const half_bits* __restrict__ u, const float* __restrict__ weight, const float* __restrict__ scale, float* __restrict__ to, int pixels,
    int channels, float level) {
    extern __shared__ float4 shared[];
    float* weights = reinterpret_cast<float*>(shared);
    for (int i = threadIdx.x; i < COLOURS * channels; i += THREADS) weights[i] = weight[i];
    wait_for_previous_kernel();
    __syncthreads();
    const int pixel = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool is_mine = pixel < pixels;
    float sum[COLOURS] = {};
    if (is_mine) {
        const half_bits* from = u + ((size_t)blockIdx.y * pixels + pixel) * channels;
        for (int channel = lane * 8; channel < channels; channel += LANES * 8) {
            float v[8], w[8];
            load_many(from + channel, v);
#pragma unroll
            for (int k = 0; k < COLOURS; ++k) {
                load_many(weights + k * channels + channel, w);
#pragma unroll
                for (int i = 0; i < 8; ++i) sum[k] = fmaf(v[i], w[i], sum[k]);
            }
        }
    }
    const float unit = 1.0f / (level * scale[blockIdx.y]);
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) {
        float total = sum[k];
#pragma unroll
        for (int other = LANES / 2; other > 0; other >>= 1) total += __shfl_xor_sync(0xffffffffu, total, other);
        if (is_mine && lane == k % LANES) to[((size_t)blockIdx.y * COLOURS + k) * pixels + pixel] = total * unit;
    }
}
