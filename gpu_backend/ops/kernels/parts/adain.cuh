// What gpu_backend/ops/adain.py normalises: act(x + b + strength noise), and the style after it. A channel's numbers are
// its bias and the strength of its noise; where there are none, null pointers.
//
// Macros: HALF, ACTIVATION. BLURS_BIAS: the bias was added before the blur, which leaves three quarters of it at a border.
// part: types
// part: activation
// part: noise

// A layer's noise at a pixel, before the strength of a channel.
__device__ __forceinline__ float layer_noise(
    const float* noise, const float* noise_gain, const unsigned* noise_source, int noise_layer, int pixel) {
    return noise == nullptr ? 0.0f : scaled_noise(noise, noise_source, noise_gain[0], noise_layer, (unsigned)pixel);
}

// What is left of the bias at a pixel.
__device__ __forceinline__ float bias_share(int pixel, int side) {
#if BLURS_BIAS
    const int row = pixel / side, column = pixel - row * side;
    return (row == 0 || row == side - 1 ? 0.75f : 1.0f) * (column == 0 || column == side - 1 ? 0.75f : 1.0f);
#else
    return 1.0f;
#endif
}

// N neighbouring channels of a table, zeros where there is none.
template <int N>
__device__ __forceinline__ void load_table(const float* table, int channel, bool there, float (&v)[N]) {
    if (there && table != nullptr) {
        load_many<N>(table + channel, v);
    } else {
#pragma unroll
        for (int e = 0; e < N; ++e) v[e] = 0.0f;
    }
}

// v: what the convolution gave, then what is normalised.
template <int N>
__device__ __forceinline__ void finish_before_normal(
    float (&v)[N], const float (&bias)[N], const float (&strength)[N], float noise, float share, float gain, float clamp) {
#pragma unroll
    for (int e = 0; e < N; ++e) {
#if BLURS_BIAS
        v[e] = fmaf(share, bias[e], v[e]);
#else
        v[e] += bias[e];
#endif
        v[e] = bounded(activate(fmaf(strength[e], noise, v[e])) * gain, clamp);
    }
}

// Eight neighbouring channels of a pixel, as they lie in memory.
__device__ __forceinline__ uint4 load_eight(const half_bits* from) {
    return *reinterpret_cast<const uint4*>(from);
}

__device__ __forceinline__ void unpack(const uint4& words, float (&v)[8]) {
    from_half2(words.x, v[0], v[1]), from_half2(words.y, v[2], v[3]);
    from_half2(words.z, v[4], v[5]), from_half2(words.w, v[6], v[7]);
}

// Mean, factor and shift of a channel, as `affine` holds them: (samples, 3, cout). Zeros in channels that are padding.
struct Affine {
    float mean, factor, shift;
};

// `style`: of the sample and the layer, `channels` scales and as many shifts.
__device__ __forceinline__ Affine affine_of(
    float mean, float variance, const float* style, int channel, int channels, float epsilon) {
    if (channel >= channels) return {0.0f, 0.0f, 0.0f};
    return {mean, style[channel] * rsqrtf(variance + epsilon), style[channels + channel]};
}
