// Instance normalisation and style of a StyleGAN1 layer, gpu_backend/ops/adain.py; adain.cu has the formula. A thread computes four
// channels of a pixel. It is the kernel of the fp32 mode, the fallback of the fused kernel and the reference of its self-check.
//
// Macro HALF. affine: written by plain_adain_moments.cu. Grid: 256 quads of channels per block; samples.
#include "parts/types.cuh"

extern "C" __global__ void __launch_bounds__(256) plain_adain(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ affine, int side, int cout) {
    const size_t area = (size_t)side * side, quad = (size_t)blockIdx.x * 256 + threadIdx.x, sample = blockIdx.y;
    const int quads = cout / 4;
    if (quad >= area * quads) return;
    const int channel = quad % quads * 4;
    float v[4], mean[4], factor[4], shift[4];
    const size_t place = sample * area * cout + quad * 4;
    load_many<4>(x + place, v);
    const float* const own = affine + sample * 3 * cout + channel;
    load_many<4>(own, mean);
    load_many<4>(own + cout, factor);
    load_many<4>(own + 2 * cout, shift);
#pragma unroll
    for (int e = 0; e < 4; ++e) v[e] = fmaf(v[e] - mean[e], factor[e], shift[e]);
    store_many<4>(y + place, v);
}
