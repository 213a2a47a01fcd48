// The gradients of dx = m s and of ds, the sum of m x, where m = dy slope(y), from ddx and dds: for dy that is
// slope(y) (ddx s + x dds), for x it is m dds, and for s, over the pixels of a block, the sum of m ddx.
// SCALE: there is a scale. SLOPED: y is given. FROM_DX, FROM_DS: which of ddx and dds is given.
#include "parts/elements.cuh"
#include "parts/slope.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 2) scaled_act_second(
    const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ y, const float* __restrict__ scale,
    const T* __restrict__ ddx, const float* __restrict__ dds, T* __restrict__ d_dy, T* __restrict__ d_x,
    float* __restrict__ sums, int pixels, int channels, int strip, float gain, float below, float bound) {
    const int groups = channels / V, lanes = THREADS / groups;
    const int group = threadIdx.x % groups, lane = threadIdx.x / groups;
    const size_t image = blockIdx.y;
    const int begin = blockIdx.x * strip, end = begin + strip < pixels ? begin + strip : pixels;
#if SCALE
    Elements s = {};
    if (lane < lanes) s = of_channels(scale + image * channels + group * V);
#endif
#if FROM_DS
    Elements q = {};
    if (lane < lanes) q = of_channels(dds + image * channels + group * V);
#endif
    Elements of_dx = {};
    if (lane < lanes) {
#pragma unroll 2
        for (int pixel = begin + lane; pixel < end; pixel += lanes) {
            const size_t place = (image * pixels + pixel) * channels + group * V;
#if SCALE || FROM_DS
            Elements m = load(dy + place);
#endif
#if SLOPED
            const Elements at = load(y + place);
#endif
#if FROM_DS
            const Elements beside = load(x + place);
#endif
#if FROM_DX
            const Elements from = load(ddx + place);
#endif
            Elements total;
#pragma unroll
            for (int i = 0; i < V; ++i) {
#if SLOPED
                const float slope = slope_at(at.of[i], gain, below, bound);
#else
                const float slope = gain;
#endif
                float t = 0.0f;
#if FROM_DX && SCALE
                t = from.of[i] * s.of[i];
#elif FROM_DX
                t = from.of[i];
#endif
#if FROM_DS
                t = fmaf(beside.of[i], q.of[i], t);
#endif
                total.of[i] = t * slope;
#if SCALE || FROM_DS
                const float back = m.of[i] * slope;
#endif
#if FROM_DX && SCALE
                of_dx.of[i] = fmaf(back, from.of[i], of_dx.of[i]);
#endif
#if FROM_DS
                m.of[i] = back * q.of[i];
#endif
            }
            store(d_dy + place, total);
#if FROM_DS
            store(d_x + place, m);
#endif
        }
    }
#if FROM_DX && SCALE
    __shared__ float shared[THREADS * V];
    sum_lanes(of_dx, shared, sums + (image * gridDim.x + blockIdx.x) * channels, channels, group, lane, lanes);
#endif
}
