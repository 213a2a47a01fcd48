// Parts of a layer's epilogue as a pass over memory, in plans whose epilogues are not fused (`Target.fuses_epilogues`):
//     y = (clamp(act(x + noise + bias) * gain) + U(skip)) * style
// x, y: (batch, side, side, channels), channels padded to eight; noise, bias and style may be null.
// Macros: HALF, ACTIVATION, HAS_SKIP, TAPS (of the skip's filter).
// Grid: groups of eight channels of the pixels of a sample, 256 per block; samples.
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/noise.cuh"
#include "parts/doubling.cuh"

enum : int { WIDE = 8 };

__device__ __forceinline__ void load_or(const float* from, size_t place, float fallback, float (&v)[WIDE]) {
    if (from != nullptr) {
        load_many<WIDE>(from + place, v);
    } else {
#pragma unroll
        for (int i = 0; i < WIDE; ++i) v[i] = fallback;
    }
}

extern "C" __global__ void __launch_bounds__(256) epilogue_pass(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ noise, const float* __restrict__ noise_gain,
    const unsigned* __restrict__ noise_source, const float* __restrict__ bias, const float* __restrict__ style,
#if HAS_SKIP
    const T* __restrict__ skip, const float* __restrict__ taps,
#endif
    float noise_strength, int noise_layer, int side, int channels, int style_stride, float gain, float clamp) {
    const int groups = channels / WIDE, item = blockIdx.x * 256 + threadIdx.x;
    if (item >= side * side * groups) return;
    const int pixel = item / groups, first = item % groups * WIDE;
    const size_t sample = blockIdx.y, place = (sample * side * side + pixel) * channels + first;
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength, noise_layer);
    const float added = layer_noise.at(pixel);
    float v[WIDE], biases[WIDE], styles[WIDE];
    load_many<WIDE>(x + place, v);
    load_or(bias, first, 0.0f, biases);
    load_or(style, sample * style_stride + first, 1.0f, styles);
#pragma unroll
    for (int i = 0; i < WIDE; ++i) v[i] = bounded(activate(v[i] + (added + biases[i])) * gain, clamp);
#if HAS_SKIP
    const size_t half_side = side >> 1;
    const T* const low = skip + sample * half_side * half_side * channels + first;
    add_doubled<WIDE>(v, low, taps, side, channels, pixel / side, pixel % side);
#endif
#pragma unroll
    for (int i = 0; i < WIDE; ++i) v[i] *= styles[i];
    store_many<WIDE>(y + place, v);
}
