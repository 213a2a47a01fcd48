// With m = dy slope(y): dx = m s, and for every picture and channel, of the pixels of a block, sums of m x, m n and m.
// SCALE: there is a scale. SLOPED: y is given. SUM_X, SUM_NOISE, SUM_ONE: which sums are wanted, in this order.
#include "parts/elements.cuh"
#include "parts/slope.cuh"

#define SUMS (SUM_X + SUM_NOISE + SUM_ONE)

extern "C" __global__ void __launch_bounds__(THREADS, 2) scaled_act_gradients(
    const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ y, const float* __restrict__ scale,
    const T* __restrict__ noise, T* __restrict__ dx, float* __restrict__ sums, int pixels, int channels,
    int noise_step, int strip, float gain, float below, float bound) {
    const int groups = channels / V, lanes = THREADS / groups;
    const int group = threadIdx.x % groups, lane = threadIdx.x / groups;
    const size_t image = blockIdx.y;
    const int begin = blockIdx.x * strip, end = begin + strip < pixels ? begin + strip : pixels;
#if SCALE
    Elements s = {};
    if (lane < lanes) s = of_channels(scale + image * channels + group * V);
#endif
    Elements of_x = {}, of_noise = {}, of_one = {};
    if (lane < lanes) {
#pragma unroll 2
        for (int pixel = begin + lane; pixel < end; pixel += lanes) {
            const size_t place = (image * pixels + pixel) * channels + group * V;
            Elements m = load(dy + place);
#if SLOPED
            const Elements at = load(y + place);
#endif
#if SUM_X
            const Elements beside = load(x + place);
#endif
#if SUM_NOISE
#if TYPE == 0
            const float n = noise[image * noise_step + pixel];
#else
            const float n = from_bits(noise[image * noise_step + pixel]);
#endif
#endif
#pragma unroll
            for (int i = 0; i < V; ++i) {
#if SLOPED
                const float v = m.of[i] * slope_at(at.of[i], gain, below, bound);
#else
                const float v = m.of[i] * gain;
#endif
#if SUM_X
                of_x.of[i] = fmaf(v, beside.of[i], of_x.of[i]);
#endif
#if SUM_NOISE
                of_noise.of[i] = fmaf(v, n, of_noise.of[i]);
#endif
#if SUM_ONE
                of_one.of[i] += v;
#endif
#if SCALE
                m.of[i] = v * s.of[i];
#else
                m.of[i] = v;
#endif
            }
            store(dx + place, m);
        }
    }
#if SUMS
    __shared__ float shared[THREADS * V];
    float* to = sums + (image * gridDim.x + blockIdx.x) * SUMS * channels;
#if SUM_X
    sum_lanes(of_x, shared, to, channels, group, lane, lanes);
    to += channels;
#endif
#if SUM_NOISE
    sum_lanes(of_noise, shared, to, channels, group, lane, lanes);
    to += channels;
#endif
#if SUM_ONE
    sum_lanes(of_one, shared, to, channels, group, lane, lanes);
#endif
#endif
}
