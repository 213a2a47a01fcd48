// The adjoint of the first layer of a discriminator: to[k] = sum_c W[k, c] u[c] / (level * scale[sample]).
//
// u is [sample][side][side][channels] fp16, W fp32, to [sample][COLOURS][side][side] fp32. Macro COLOURS. Grid: groups of 256 pixels, samples;
// 4 * COLOURS bytes of dynamic shared memory for each channel.
#define HALF 1
#define LANES 4
#include "parts/types.cuh"
#include "parts/gradient_colours.cuh"
#include "parts/previous_kernel.cuh"

enum : int { THREADS = 256 };

extern "C" __global__ void __launch_bounds__(THREADS, COLOURS == 3 && LEVEL < 1000 ? 4 : 3) discriminator_rgb_adjoint(
    const half_bits* __restrict__ u, const float* __restrict__ weight, const float* __restrict__ scale, float* __restrict__ to, int pixels,
    int channels, float level) {
    extern __shared__ float4 shared[];
    float* weights = reinterpret_cast<float*>(shared);
    for (int i = threadIdx.x * 4; i < COLOURS * channels; i += THREADS * 4) shared[i / 4] = *reinterpret_cast<const float4*>(weight + i);
    const int first = (blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * WARP_PIXELS, count = min(WARP_PIXELS, pixels - first);
    const half_bits* from = u + ((size_t)blockIdx.y * pixels + min(first, pixels - 1)) * channels;
    wait_for_previous_kernel();
    uint4 v[STEPS][TURNS];
    load_pixels(from, threadIdx.x % LANES * 8, channels, max(count, 1), v);
    const float unit = 1.0f / (level * scale[blockIdx.y]);
    __syncthreads();
    float sum[COLOURS];
    sum_colours(from, weights, channels, max(count, 1), v, sum);
    if (own_pixel() >= count) return;
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) to[((size_t)blockIdx.y * COLOURS + k) * pixels + first + own_pixel()] = sum[k] * unit;
}
