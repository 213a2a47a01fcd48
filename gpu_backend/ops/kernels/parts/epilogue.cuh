// The end of every layer:
//     v = clamp(act(conv * demod + noise + bias) * gain) + U(skip)        y_raw
//     y = v * next_style                                                  ready for the convolution that reads it
// part: types
// part: activation
// part: philox
// part: doubling

// What is added for noise at `pixel` = row * side + column; the same in every sample.
//     noise          the stored picture, or null: the layer has no noise
//     noise_source   mode (0: the stored picture, 1: random), low and high half of the seed
//     strength       of the layer, times its gain
__device__ __forceinline__ float scaled_noise(
    const float* noise, const unsigned* noise_source, float strength, int noise_layer, unsigned pixel) {
    if (strength == 0.0f) return 0.0f;  // whatever the picture holds
    if (noise_source[0] == 0u) return strength * noise[pixel];
    return strength * noise_at(noise_source[1], noise_source[2], (unsigned)noise_layer, pixel);
}

__device__ __forceinline__ float noise_value(
    const float* noise, const unsigned* noise_source, const float* noise_gain, float noise_strength, int noise_layer,
    unsigned pixel) {
    if (noise == nullptr) return 0.0f;
    return scaled_noise(noise, noise_source, noise_strength * noise_gain[0], noise_layer, pixel);
}

// `clamp` is infinite for none.
__device__ __forceinline__ float finish(float conv, float demod, float noise, float bias, float gain, float clamp) {
    return bounded(activate(conv * demod + (noise + bias)) * gain, clamp);
}
