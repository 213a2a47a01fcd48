// gpu_backend/ops/modulated_conv.py without tensor cores, also a resnet's skip convolution: fp32 sums, weights [tap][cin][cout] in
// fp32. It is the kernel of the fp32 mode, the fallback of the fused kernel and the reference of its self-check.
//
// Macros: HALF, FP8_X, ACTIVATION, KERNEL, PADDING (zeros around the input), HAS_SKIP, TAPS (of the skip's filter), and those of
// parts/direct_conv.cuh. Grid: tiles of pixels (all samples one after the other), tiles of output channels.
//
// `#if` selects parameters, which only some variants have; all other choices are `if constexpr`.
enum : int { AXIS_TAPS = KERNEL };
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
    Layer layer = {y, y_raw, demod, next_style, bias, strengths, batch, side, cout, demod_stride, style_stride, gain, clamp};
#if HAS_SKIP
    layer.skip = skip, layer.taps = taps;
#endif
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength, noise_layer);
    finish_tile(layer, layer_noise, first_pixel, first_channel, side, 1, 0, 0);
}
