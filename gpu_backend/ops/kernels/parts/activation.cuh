// Macro ACTIVATION: a number of Activation, in the order of gpu_backend.model.spec.Activation. Comparisons keep NaN.
#pragma once

enum Activation : int { LINEAR, RELU, LRELU, TANH, SIGMOID, ELU, SELU, SOFTPLUS, SWISH };
static_assert(LINEAR <= ACTIVATION && ACTIVATION <= SWISH, "ACTIVATION is a number from 0 to 8");

__device__ __forceinline__ float activate(float v) {
    if constexpr (ACTIVATION == LINEAR) return v;
    if constexpr (ACTIVATION == RELU) return v < 0.0f ? 0.0f : v;
    if constexpr (ACTIVATION == LRELU) return v < 0.0f ? 0.2f * v : v;
    if constexpr (ACTIVATION == TANH) return tanhf(v);
    if constexpr (ACTIVATION == SIGMOID) return 1.0f / (1.0f + expf(-v));
    if constexpr (ACTIVATION == ELU) return v > 0.0f ? v : expm1f(v);
    if constexpr (ACTIVATION == SELU) return 1.05070098735548049f * (v > 0.0f ? v : 1.67326324235437728f * expm1f(v));
    if constexpr (ACTIVATION == SOFTPLUS) return v > 20.0f ? v : log1pf(expf(v));
    if constexpr (ACTIVATION == SWISH) return v / (1.0f + expf(-v));
}
