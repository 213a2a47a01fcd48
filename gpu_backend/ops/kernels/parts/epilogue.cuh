// The end of every layer:
//     v = clamp(act(conv * demod + noise + bias) * gain) + U(skip)        y_raw
//     y = v * next_style                                                  ready for the convolution that reads it
// part: types
// part: activation
// part: noise
// part: doubling

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
