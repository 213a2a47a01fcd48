// The epilogue of every convolution:
//     v = clamp(act(conv * demod + noise + bias) * gain) + U(skip)        y_raw
//     y = v * next_style                                                  input of the next convolution
#pragma once
#include "parts/types.cuh"
#include "parts/e4m3.cuh"
#include "parts/activation.cuh"
#include "parts/noise.cuh"
#include "parts/doubling.cuh"

// `clamp` is infinite in layers without a clamp.
__device__ __forceinline__ float finish(float conv, float demod, float noise, float bias, float gain, float clamp) {
    return bounded(activate(conv * demod + (noise + bias)) * gain, clamp);
}

// Linear, relu and lrelu are homogeneous: the gain is applied before them, once per channel instead of once per number.
enum : bool { IS_HOMOGENEOUS = ACTIVATION <= 2 };
__device__ __forceinline__ float gain_before(float gain) { return IS_HOMOGENEOUS ? gain : 1.0f; }
__device__ __forceinline__ float gain_after(float gain) { return IS_HOMOGENEOUS ? 1.0f : gain; }

// Parameters of all fused convolutions, given by name in gpu_backend/cuda/launches/conv_arguments.py. Null pointers: no
// demodulation, style, bias or noise, an output that is not stored.
#define LAYER_PARAMETERS                                                                                              \
    const X* __restrict__ x, const void* __restrict__ weight, Y* __restrict__ y, T* __restrict__ y_raw,               \
    const float* __restrict__ demod, const float* __restrict__ next_style, const float* __restrict__ bias,            \
    const float* __restrict__ noise, const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source, \
    float noise_strength, int noise_layer
#define SIZE_PARAMETERS                                                                                               \
    int batch, int side, int cin, int cout, int demod_stride, int style_stride, float gain, float clamp
