// Mean, factor and shift of every channel, gpu_backend/ops/adain.py. A block loops over all pixels of four channels of a sample, first
// for the mean, then for the variance. With plain_adain.cu it serves the fp32 mode, is the fallback of the fused kernels and the
// reference of their self-checks.
//
// Macro HALF. x: (batch, side, side, cout), after the activation. affine: (batch, 3, cout). Grid: quads of channels, samples.
#include "parts/adain.cuh"

enum : int {
    THREADS = 512,
    WARPS = THREADS / 32,
};

__shared__ float warp_sums[WARPS][4];

// Replaces the sums of a thread by those of the block. All threads call this.
__device__ __forceinline__ void total(float (&sums)[4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int other = 16; other > 0; other >>= 1) sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int e = 0; e < 4; ++e) warp_sums[threadIdx.x / 32][e] = sums[e];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        sums[e] = 0.0f;
        for (int w = 0; w < WARPS; ++w) sums[e] += warp_sums[w][e];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) plain_adain_moments(
    const T* __restrict__ x, float* __restrict__ affine, const float* __restrict__ style, int side, int cout, int channels,
    int style_stride, float epsilon) {
    const int channel = blockIdx.x * 4, area = side * side;
    const size_t sample = blockIdx.y;
    const T* const from = x + sample * area * cout + channel;
    float v[4], mean[4] = {}, squares[4] = {};
#pragma unroll 1
    for (int pixel = threadIdx.x; pixel < area; pixel += THREADS) {
        load_many<4>(from + (size_t)pixel * cout, v);
#pragma unroll
        for (int e = 0; e < 4; ++e) mean[e] += v[e];
    }
    total(mean);
#pragma unroll
    for (int e = 0; e < 4; ++e) mean[e] /= (float)area;
#pragma unroll 1
    for (int pixel = threadIdx.x; pixel < area; pixel += THREADS) {
        load_many<4>(from + (size_t)pixel * cout, v);
#pragma unroll
        for (int e = 0; e < 4; ++e) squares[e] = fmaf(v[e] - mean[e], v[e] - mean[e], squares[e]);
    }
    total(squares);
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const Affine found =
            affine_of(mean[e], squares[e] / (float)area, style + sample * style_stride, channel + e, channels, epsilon);
        float* const to = affine + sample * 3 * cout + channel + e;
        to[0] = found.mean, to[cout] = found.factor, to[2 * cout] = found.shift;
    }
}
