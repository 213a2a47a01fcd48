// The way back through the end of a layer, from the gradient g of the next convolution's input x = z * style:
//
//     dz = g * style,   dv = dz * gain * (1 where z > 0, else the slope) * (1 inside the clamp),   u = dv * demod
//     style_sums = sum over pixels of z g,   demod_sums = sum over pixels of dv (v - noise - bias) / demod
//
// v is found from z, since the leaky ReLU can be undone. g comes in slices of fp32 sums, u goes on as bf16. Without `style`,
// g is the gradient of z itself; without `u`, z is the network's constant, and only style_sums are wanted.
// Grid: blocks of pixels, groups of 128 channels; each block of pixels has a row of its own in style_sums and demod_sums.
#define HALF 1
#include "parts/types.cuh"
#include "parts/bfloat.cuh"

#define LANES 32
#define PIXEL_ROWS 8
#define SLOPE 0.2f

__device__ __forceinline__ void add_up(float4* shared, const float (&v)[4], float* to) {
    shared[threadIdx.y * LANES + threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
    __syncthreads();
    if (threadIdx.y == 0 && to) {
        float total[4] = {};
#pragma unroll
        for (int i = 0; i < PIXEL_ROWS; ++i) {
            const float4 q = shared[i * LANES + threadIdx.x];
            total[0] += q.x, total[1] += q.y, total[2] += q.z, total[3] += q.w;
        }
        store_many(to, total);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(LANES* PIXEL_ROWS) gradient_activation(
    const float* __restrict__ g, const float* __restrict__ style, const half_bits* __restrict__ z,
    const float* __restrict__ noise, const float* __restrict__ bias, const float* __restrict__ demod,
    unsigned short* __restrict__ u, float* __restrict__ style_sums, float* __restrict__ demod_sums, int slices, int pixels,
    int channels, int pixels_per_block, float gain, float clamp) {
    __shared__ float4 shared[LANES * PIXEL_ROWS];
    const int channel = (blockIdx.y * LANES + threadIdx.x) * 4;
    const bool is_mine = channel < channels;
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f}, b[4] = {}, s[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    if (is_mine && u) load_many(demod + channel, d), load_many(bias + channel, b);
    if (is_mine && style) load_many(style + channel, s);
    float style_sum[4] = {}, demod_sum[4] = {};
    const size_t step = (size_t)pixels * channels;
    const int end = min(pixels, ((int)blockIdx.x + 1) * pixels_per_block);
    if (is_mine)
        for (int pixel = blockIdx.x * pixels_per_block + threadIdx.y; pixel < end; pixel += PIXEL_ROWS) {
            const size_t place = (size_t)pixel * channels + channel;
            float up[4], out[4];
            load_many(g + place, up);
#pragma unroll 8
            for (int slice = 1; slice < slices; ++slice) {
                float q[4];
                load_many(g + slice * step + place, q);
#pragma unroll
                for (int i = 0; i < 4; ++i) up[i] += q[i];
            }
            float result[4];
            load_many(z + place, result);
            const float n = noise ? noise[pixel] : 0.0f;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                style_sum[i] = fmaf(result[i], up[i], style_sum[i]);
                const float slope = result[i] > 0.0f ? gain : SLOPE * gain;
                const bool is_inside = fabsf(result[i]) < clamp;
                const float dv = is_inside ? up[i] * s[i] * slope : 0.0f;
                const float product = is_inside ? result[i] / slope - n - b[i] : 0.0f;
                demod_sum[i] = fmaf(dv, product, demod_sum[i]);
                out[i] = dv * d[i];
            }
            if (u) store_bfloats(u + place, out);
        }
#pragma unroll
    for (int i = 0; i < 4; ++i) demod_sum[i] /= d[i];
    const size_t row = (size_t)blockIdx.x * channels + channel;
    if (style_sums) add_up(shared, style_sum, is_mine ? style_sums + row : nullptr);
    if (demod_sums) add_up(shared, demod_sum, is_mine ? demod_sums + row : nullptr);
}
