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
    bool is_plain;  // the stored picture as it is: what most frames have, so that it costs a load and nothing else

    __device__ __forceinline__ LayerNoise(
        const float* noise_, const unsigned* source_, const float* gain, float layer_strength, int layer_)
        : noise(noise_), source(source_), strength(noise_ == nullptr ? 0.0f : layer_strength * gain[0]), layer(layer_),
          is_plain(source_ == nullptr || (source_[0] == 0u && __uint_as_float(source_[3]) == 0.0f)) {}

    __device__ __forceinline__ float fetch(unsigned pixel) const {
        if (strength == 0.0f) return 0.0f;  // whatever the picture holds
        return is_plain ? noise[pixel] : made(pixel);
    }

    // Random noise; or the stored number, turned by the phase with the other one of its pair of pixels.
    __device__ __forceinline__ float made(unsigned pixel) const {
        const float phase = __uint_as_float(source[3]);
        if (source[0] != 0u) return noise_at(source[1], source[2], (unsigned)layer, pixel, phase);
        float sine, cosine;
        sincospif(phase, &sine, &cosine);
        return cosine * noise[pixel] + ((pixel & 1u) ? sine : -sine) * noise[pixel ^ 1u];
    }

    __device__ __forceinline__ float at(unsigned pixel) const { return strength * fetch(pixel); }
};
