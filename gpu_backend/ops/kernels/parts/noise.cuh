#pragma once
#include "parts/philox.cuh"

// What a layer adds for noise at `pixel` = row * side + column; the same in every sample.
//     noise     the stored picture, or null: the layer has no noise
//     source    mode (0: the stored picture, 1: random), low and high half of the seed, bits of the phase in half turns
//     strength  of the layer, times its gain
// In two halves, for who fetches early what is needed late: nothing waits for a stored number before it is used.
struct LayerNoise {
    const float* noise;
    const unsigned* source;
    float strength;
    int layer;
    bool is_random;

    __device__ __forceinline__ LayerNoise(
        const float* noise_, const unsigned* source_, const float* gain, float layer_strength, int layer_)
        : noise(noise_), source(source_), strength(noise_ == nullptr ? 0.0f : layer_strength * gain[0]), layer(layer_),
          is_random(source_ != nullptr && source_[0] != 0u) {}

    __device__ __forceinline__ float fetch(unsigned pixel) const {
        if (strength == 0.0f) return 0.0f;  // whatever the picture holds
        const float phase = source == nullptr ? 0.0f : __uint_as_float(source[3]);
        if (is_random) return noise_at(source[1], source[2], (unsigned)layer, pixel, phase);
        return phase == 0.0f ? noise[pixel] : turned(pixel, phase);
    }

    // The stored number, turned with the other one of its pair of pixels.
    __device__ __forceinline__ float turned(unsigned pixel, float phase) const {
        float sine, cosine;
        sincospif(phase, &sine, &cosine);
        return cosine * noise[pixel] + ((pixel & 1u) ? sine : -sine) * noise[pixel ^ 1u];
    }

    __device__ __forceinline__ float at(unsigned pixel) const { return strength * fetch(pixel); }
};
