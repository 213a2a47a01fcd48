// gpu_backend/ops/modulated_up_conv.py without tensor cores. The transposed convolution and its FIR filter together are
// four convolutions of the low-resolution input, one for each parity of row and column, with the weights that
// gpu_backend/cuda/launches/polyphase.py composes: [row parity][column parity][tap][cin][cout] in fp32. The result of the transposed
// convolution is never stored.
//
// Macros: HALF, FP8_Y, ACTIVATION, KERNEL, TAPS (of the filter), BLURS_BIAS, and those of parts/direct_conv.cuh. ODD_BORDER, see
// modulated_up_conv.cu, adds a tap along an axis, which applies to the first row or the last.
// Grid: tiles of low-resolution pixels (all samples one after the other), tiles of output channels, parities.
//
// With n = TAPS, k = KERNEL and left = 1 + (n + 1) / 2 - (k - 1), output u = 2 i + r is
//     sum_s G[r + n - 1 - left - 2 s] * x[i + s],   G = FIR convolved with W, n + k - 1 long
enum : int {
    AXIS_TAPS = (TAPS + KERNEL) / 2 + ODD_BORDER,
    LEFT = 1 + (TAPS + 1) / 2 - (KERNEL - 1),
};
#include "parts/plain_layer.cuh"

// The smallest s: ceil((r - left - k + 1) / 2).
__device__ __forceinline__ int first_shift(int parity) {
    return (parity - LEFT - KERNEL + 2) >> 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, (ODD_BORDER ? 256 : 384) / THREADS) plain_modulated_up_conv(
    PLAIN_LAYER_PARAMETERS, SIZE_PARAMETERS, const float* __restrict__ strengths) {
    const int first_pixel = blockIdx.x * TILE_PIXELS, first_channel = blockIdx.y * TILE_CHANNELS;
    const int row_parity = blockIdx.z >> 1, column_parity = blockIdx.z & 1;
    const size_t phase = (size_t)blockIdx.z * (AXIS_TAPS * AXIS_TAPS) * cin * cout;
    const int last = (side >> 1) - 1;
    direct_conv(
        x, static_cast<const float*>(weight) + phase, batch, side >> 1, side >> 1, cin, cout, first_pixel,
        first_channel, first_shift(row_parity), first_shift(column_parity), row_parity * last, column_parity * last);
    const Layer layer = {
        y, y_raw, demod, next_style, bias, strengths, batch, side, cout, demod_stride, style_stride, gain, clamp,
    };
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength, noise_layer);
    finish_tile(layer, layer_noise, first_pixel, first_channel, side >> 1, 2, row_parity, column_parity);
}
