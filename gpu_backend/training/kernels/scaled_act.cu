// y = clamp(leaky ReLU(x s + r n + b) gain). A block takes pixels of a picture, a thread V channels of each.
// SCALE, NOISE, BIAS, SLOPED: 1 where there is a scale, noise, a bias, a leaky ReLU or clamp.
#include "parts/elements.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) scaled_act(
    const T* __restrict__ x, const float* __restrict__ scale, const T* __restrict__ noise,
    const float* __restrict__ strength, const float* __restrict__ bias, T* __restrict__ y, int pixels, int channels,
    int noise_step, float gain, float below, float bound) {
    const int groups = channels / V, lanes = THREADS / groups;
    const int group = threadIdx.x % groups, lane = threadIdx.x / groups;
    if (lane >= lanes) return;
    const size_t image = blockIdx.y;
#if SCALE
    const Elements s = of_channels(scale + image * channels + group * V);
#endif
#if BIAS
    const Elements b = of_channels(bias + group * V);
#endif
#if NOISE
    const float r = *strength;
    const T* pictures = noise + image * noise_step;
#endif
#pragma unroll 4
    for (int pixel = blockIdx.x * lanes + lane; pixel < pixels; pixel += gridDim.x * lanes) {
        const size_t place = (image * pixels + pixel) * channels + group * V;
        Elements e = load(x + place);
#if NOISE
#if TYPE == 0
        const float n = pictures[pixel] * r;
#else
        const float n = from_bits(pictures[pixel]) * r;
#endif
#endif
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float v = e.of[i];
#if SCALE
            v *= s.of[i];
#endif
#if NOISE
            v += n;
#endif
#if BIAS
            v += b.of[i];
#endif
#if SLOPED
            v = bounded(v * (v > 0.0f ? gain : gain * below), bound);
#else
            v *= gain;
#endif
            e.of[i] = v;
        }
        store(y + place, e);
    }
}
