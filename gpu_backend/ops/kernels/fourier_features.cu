// The sines that a StyleGAN3 starts from (gpu_backend/ops/fourier_features.py), before they are mixed by a convolution:
//     y[pixel][c] = amp_c sin(2 pi (freq'_c . place(pixel) + phase'_c))
// Macro HALF: see parts/types.cuh. waves[c]: frequency along x and y, phase, 0; padding holds zeros, whose sine is 0. affine:
// weights (4, w_dim), which include 1 / sqrt(w_dim), then four biases.
// A block computes all channels of PIXELS pixels: first the outputs of the affine layer, two warps each, then each thread four channels. What
// follows from nothing else is loaded before: the kernel is short, and waits are most of it. Grid: pixels of a sample, PIXELS a block; samples.
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    THREADS = 256,
    PIXELS = 2,
};

extern "C" __global__ void __launch_bounds__(THREADS) fourier_features(
    const float* __restrict__ ws, const float* __restrict__ transform, const float* __restrict__ affine,
    const float4* __restrict__ waves, T* __restrict__ y, int ws_stride, int w_dim, int channels, int size,
    float sampling_rate, float bandwidth) {
    wait_for_previous_kernel();
    __shared__ float sums[THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, output = warp / 2, area = size * size;
    const size_t sample = blockIdx.y;
    const float* const w = ws + sample * ws_stride;
    int c = threadIdx.x * 4;
    float4 wave[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) wave[e] = waves[min(c, channels - 4) + e];
    float given[9];
#pragma unroll
    for (int i = 0; i < 9; ++i) given[i] = transform[i];
    const float bias = affine[4 * w_dim + output];
    float sum = 0.0f;
#pragma unroll 8
    for (int i = warp % 2 * 32 + lane; i < w_dim; i += 64) sum += affine[output * w_dim + i] * w[i];
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) sums[warp] = warp % 2 == 0 ? sum + bias : sum;
    __syncthreads();

    float pose[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pose[i] = sums[2 * i] + sums[2 * i + 1];
    const float length = sqrtf(pose[0] * pose[0] + pose[1] * pose[1]);
    const float t0 = pose[0] / length, t1 = pose[1] / length, t2 = pose[2] / length, t3 = pose[3] / length;
    const float turned[2][3] = {{t0, -t1, t1 * t3 - t0 * t2}, {t1, t0, -t1 * t2 - t0 * t3}};
    float matrix[2][3];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        matrix[i / 3][i % 3] = turned[i / 3][0] * given[i % 3] + turned[i / 3][1] * given[3 + i % 3] + turned[i / 3][2] * given[6 + i % 3];
    }
    const float room = 0.5f * sampling_rate - bandwidth;
    while (c < channels) {
        float along_x[4], along_y[4], phase[4], amplitude[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            along_x[e] = wave[e].x * matrix[0][0] + wave[e].y * matrix[1][0];
            along_y[e] = wave[e].x * matrix[0][1] + wave[e].y * matrix[1][1];
            phase[e] = wave[e].z + wave[e].x * matrix[0][2] + wave[e].y * matrix[1][2];
            const float frequency = sqrtf(along_x[e] * along_x[e] + along_y[e] * along_y[e]);
            amplitude[e] = fminf(fmaxf(1.0f - (frequency - bandwidth) / room, 0.0f), 1.0f);
        }
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) {
            const int pixel = blockIdx.x * PIXELS + i;
            if (pixel >= area) break;
            const float place_x = (pixel % size + 0.5f - 0.5f * size) / sampling_rate;
            const float place_y = (pixel / size + 0.5f - 0.5f * size) / sampling_rate;
            float v[4];
#pragma unroll
            for (int e = 0; e < 4; ++e)
                v[e] = amplitude[e] * sinpif(2.0f * (along_x[e] * place_x + along_y[e] * place_y + phase[e]));
            store_many<4>(y + (sample * area + pixel) * channels + c, v);
        }
        c += THREADS * 4;
#pragma unroll
        for (int e = 0; e < 4; ++e) wave[e] = waves[min(c, channels - 4) + e];
    }
}
