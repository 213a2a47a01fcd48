// The end of every layer:
//     v = clamp(act(conv * demod + noise + bias) * gain) + U(skip)        y_raw
//     y = v * next_style                                                  ready for the convolution that reads it
#pragma once
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/noise.cuh"
#include "parts/doubling.cuh"

// `clamp` is infinite for none.
__device__ __forceinline__ float finish(float conv, float demod, float noise, float bias, float gain, float clamp) {
    return bounded(activate(conv * demod + (noise + bias)) * gain, clamp);
}
