#pragma once
#include "parts/philox.cuh"

// The noise that a layer adds at `pixel` = row * side + column, the same in every sample.
//     noise     the stored noise, or null in a layer without noise
//     source    mode (0: stored, 1: random), low and high half of the seed, bits of the phase in half turns
//     strength  of the layer, times its gain
// `fetch` loads, the caller multiplies by the strength: a kernel that fetches early does not wait for the load before it uses it.
struct LayerNoise {
    const float* noise;
    const unsigned* source;
    float strength;
    int layer;
    bool is_plain;  // stored noise without a phase, as in most frames: one load

    __device__ __forceinline__ LayerNoise(
        const float* noise_, const unsigned* source_, const float* gain, float layer_strength, int layer_)
        : noise(noise_), source(source_), strength(noise_ == nullptr ? 0.0f : layer_strength * gain[0]), layer(layer_),
          is_plain(source_ == nullptr || (source_[0] == 0u && __uint_as_float(source_[3]) == 0.0f)) {}

    __device__ __forceinline__ float fetch(unsigned pixel) const {
        if (strength == 0.0f) return 0.0f;  // even if the stored noise is not finite
        return is_plain ? noise[pixel] : made(pixel);
    }

    // Random noise; or the stored number, rotated by the phase with that of its neighbour.
    __device__ __forceinline__ float made(unsigned pixel) const {
        const float phase = __uint_as_float(source[3]);
        if (source[0] != 0u) return noise_at(source[1], source[2], (unsigned)layer, pixel, phase);
        float sine, cosine;
        sincospif(phase, &sine, &cosine);
        return cosine * noise[pixel] + ((pixel & 1u) ? sine : -sine) * noise[pixel ^ 1u];
    }

    __device__ __forceinline__ float at(unsigned pixel) const { return strength * fetch(pixel); }
};
