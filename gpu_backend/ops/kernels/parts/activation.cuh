// Macro ACTIVATION: 0 linear, 1 relu, 2 lrelu, 3 tanh, 4 sigmoid, 5 elu, 6 selu, 7 softplus, 8 swish
// (the order of gpu_backend.model.spec.Activation). Comparisons are written so that NaN stays NaN.
#pragma once

__device__ __forceinline__ float activate(float v) {
#if ACTIVATION == 0
    return v;
#elif ACTIVATION == 1
    return v < 0.0f ? 0.0f : v;
#elif ACTIVATION == 2
    return v < 0.0f ? 0.2f * v : v;
#elif ACTIVATION == 3
    return tanhf(v);
#elif ACTIVATION == 4
    return 1.0f / (1.0f + expf(-v));
#elif ACTIVATION == 5
    return v > 0.0f ? v : expm1f(v);
#elif ACTIVATION == 6
    return 1.05070098735548049f * (v > 0.0f ? v : 1.67326324235437728f * expm1f(v));
#elif ACTIVATION == 7
    return v > 20.0f ? v : log1pf(expf(v));
#elif ACTIVATION == 8
    return v / (1.0f + expf(-v));
#else
#error "ACTIVATION is a number from 0 to 8"
#endif
}
