// gpu_backend/ops/modulated_conv.py without tensor cores: fp32 sums, weights [tap][cin][cout] fp32. It is the fp32 mode,
// what stands in for the fused kernel, and what that is compared with. Also the resnet's skip convolution. Macro PADDING:
// zeros around the input.
// Grid: tiles of pixels (of all samples in a row), tiles of channels.
#define AXIS_TAPS KERNEL
#include "parts/plain_layer.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 384 / THREADS) plain_modulated_conv(
    PLAIN_LAYER_PARAMETERS,
#if HAS_SKIP
    const T* __restrict__ skip, const float* taps,
#endif
    SIZE_PARAMETERS, const float* __restrict__ strengths) {
    const int first_pixel = blockIdx.x * TILE_PIXELS, first_channel = blockIdx.y * TILE_CHANNELS;
    direct_conv(
        x, static_cast<const float*>(weight), batch, side + KERNEL - 1 - 2 * PADDING, side, cin, cout, first_pixel,
        first_channel, -PADDING, -PADDING);
    const Layer layer = {
        y, y_raw, demod, next_style, bias, strengths, batch, side, cout, demod_stride, style_stride, gain, clamp,
#if HAS_SKIP
        skip, taps,
#endif
    };
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength, noise_layer);
    finish_tile(layer, layer_noise, first_pixel, first_channel, side, 1, 0, 0);
}
