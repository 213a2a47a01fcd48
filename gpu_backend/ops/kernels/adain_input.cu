// The first layer of a StyleGAN1, gpu_backend/ops/adain_input.py: noise, bias and activation of the learned constant, then
// instance normalisation and style. A warp loops over all pixels of four channels of a sample and keeps intermediate values in y.
// The layer is small, and no convolution precedes it whose epilogue could accumulate the moments.
//
// Macros: HALF, ACTIVATION. x: (side, side, cout). bias, strength: (cout,), strength null for a layer without noise.
// Grid: groups of sixteen channels, samples.
#include "parts/adain.cuh"
#include "parts/activation.cuh"
#include "parts/noise.cuh"
#include "parts/previous_kernel.cuh"

__device__ __forceinline__ void total(float (&sums)[4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int other = 16; other > 0; other >>= 1) sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], other);
    }
}

extern "C" __global__ void __launch_bounds__(128, 4) adain_input(
    const T* __restrict__ x, T* y, const float* __restrict__ style, const float* __restrict__ bias,
    const float* __restrict__ strength, const float* __restrict__ noise, const float* __restrict__ noise_gain,
    const unsigned* __restrict__ noise_source, int noise_layer, int side, int cout, int channels, int style_stride,
    float gain, float clamp, float epsilon) {
    wait_for_previous_kernel();
    const int lane = threadIdx.x % 32, channel = (blockIdx.x * 4 + threadIdx.x / 32) * 4, area = side * side;
    const size_t sample = blockIdx.y;
    if (channel >= cout) return;
    T* const own = y + sample * area * cout + channel;
    const LayerNoise layer_noise(noise, noise_source, noise_gain, 1.0f, noise_layer);
    float biases[4], strengths[4], v[4], mean[4] = {}, squares[4] = {};
    load_table<4>(bias, channel, true, biases);
    load_table<4>(strength, channel, true, strengths);
    for (int pixel = lane; pixel < area; pixel += 32) {
        load_many<4>(x + (size_t)pixel * cout + channel, v);
        const float value = layer_noise.at(pixel);
#pragma unroll
        for (int e = 0; e < 4; ++e) v[e] = bounded(activate(fmaf(strengths[e], value, v[e] + biases[e])) * gain, clamp);
        store_many<4>(own + (size_t)pixel * cout, v);
        load_many<4>(own + (size_t)pixel * cout, v);
#pragma unroll
        for (int e = 0; e < 4; ++e) mean[e] += v[e];
    }
    total(mean);
#pragma unroll
    for (int e = 0; e < 4; ++e) mean[e] /= (float)area;
    for (int pixel = lane; pixel < area; pixel += 32) {
        load_many<4>(own + (size_t)pixel * cout, v);
#pragma unroll
        for (int e = 0; e < 4; ++e) squares[e] = fmaf(v[e] - mean[e], v[e] - mean[e], squares[e]);
    }
    total(squares);
    float factor[4], shift[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const Affine found =
            affine_of(mean[e], squares[e] / (float)area, style + sample * style_stride, channel + e, channels, epsilon);
        factor[e] = found.factor, shift[e] = found.shift;
    }
    for (int pixel = lane; pixel < area; pixel += 32) {
        load_many<4>(own + (size_t)pixel * cout, v);
#pragma unroll
        for (int e = 0; e < 4; ++e) v[e] = fmaf(v[e] - mean[e], factor[e], shift[e]);
        store_many<4>(own + (size_t)pixel * cout, v);
    }
}
