// Shared by the kernels of gpu_backend/ops/adain.py.
#pragma once
#include "parts/types.cuh"

// Loads N neighbouring channels of a table; zeros for channels beyond the layer (is_there false) or without a table.
template <int N>
__device__ __forceinline__ void load_table(const float* table, int channel, bool is_there, float (&v)[N]) {
    if (is_there && table != nullptr) {
        load_many<N>(table + channel, v);
    } else {
#pragma unroll
        for (int e = 0; e < N; ++e) v[e] = 0.0f;
    }
}

// Mean, factor and shift of a channel: y = (v - mean) factor + shift. Zeros in channels that are padding.
struct Affine {
    float mean, factor, shift;
};

// `style`: the layer's part of a sample's styles, `channels` scales, then as many shifts.
__device__ __forceinline__ Affine affine_of(
    float mean, float variance, const float* style, int channel, int channels, float epsilon) {
    if (channel >= channels) return {0.0f, 0.0f, 0.0f};
    return {mean, style[channel] * rsqrtf(variance + epsilon), style[channels + channel]};
}
