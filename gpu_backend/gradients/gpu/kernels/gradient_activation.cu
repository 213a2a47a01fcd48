// The way back through the end of a layer, from the gradient g of the next convolution's input x = z * style:
//
//     dz = g * style + toRGB's part,   dv = dz * gain * (1 where z > 0, else the slope) * (1 inside the clamp),   u = dv * demod
//     style_sums = sum over pixels of z g,   demod_sums = sum over pixels of dv (v - noise - bias) / demod
//
// v is found from z, since the leaky ReLU can be undone. g is `unit` times the sum of slices of fp32 sums, u goes on as fp16. Without `style`,
// g is the gradient of z itself; without `u`, z is the network's constant, and only style_sums are wanted.
// Macro HALF_G: g is fp16.
// Macro RGB: with toRGB of these features, where t = rgb_unit sum_k W[k] (gradient of the picture's plane k, inside the clamp):
//
//     toRGB's part = t * rgb_style,   rgb_sums = sum over pixels of z t;      g may be missing then
//
// Macro SKIP: of the last layer of a resnet's block, whose output h = z + skip the next layers read. h takes the place of z in style_sums and
// rgb_sums; dz, the gradient of h, is also stored as `block_gradient`, if that is given, for the block's own skip. The skip of the next block adds
// skip_unit * skip_sums, one slice, to it.
//
// Grid: blocks of pixels, groups of 128 channels, samples; each block of pixels has a row of its own in all sums.
#define HALF 1
#include "parts/registers.cuh"
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define MOST_LANES 32
#define SLOPE 0.2f
#define COLOURS 3

// With toRGB the compiler keeps room for three blocks of a multiprocessor, and spills on Blackwell.
#if RGB && LEVEL >= 1000
#define BOUNDS THREADS, 2
#else
#define BOUNDS THREADS
#endif

#if HALF_G
typedef half_bits G;
#else
typedef float G;
#endif

// Sums over the threads of four channels, in those of the first row; rows lie `lanes` threads apart.
__device__ __forceinline__ void add_up(float4* shared, const float (&v)[4], int row, int rows, int lanes, float* to) {
    shared[threadIdx.x] = make_float4(v[0], v[1], v[2], v[3]);
    __syncthreads();
    if (row == 0 && to) {
        float total[4] = {};
        for (int i = 0; i < rows; ++i) {
            const float4 q = shared[i * lanes + threadIdx.x];
            total[0] += q.x, total[1] += q.y, total[2] += q.z, total[3] += q.w;
        }
        store_many(to, total);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(BOUNDS) gradient_activation(
    const G* __restrict__ g, const float* __restrict__ style, const half_bits* __restrict__ z,
    const float* __restrict__ noise, const float* __restrict__ bias, const float* __restrict__ demod,
    half_bits* __restrict__ u, float* __restrict__ style_sums, float* __restrict__ demod_sums,
#if RGB
    const float* __restrict__ picture_gradient, const float* __restrict__ planes, const float* __restrict__ rgb_weight,
    const float* __restrict__ rgb_style, float* __restrict__ rgb_sums, float rgb_clamp, float rgb_unit,
#endif
#if SKIP
    const half_bits* __restrict__ h, const float* __restrict__ skip_sums, half_bits* __restrict__ block_gradient, float skip_unit,
#endif
    int slices, int pixels, int channels, int pixels_per_block, int style_count, int demod_count, int sum_count, float unit,
    float gain, float clamp) {
    __shared__ float4 shared[THREADS];
    const int lanes = min(MOST_LANES, channels >> 2), rows = THREADS / lanes;
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes, sample = blockIdx.z;
    const int channel = (blockIdx.y * lanes + lane) * 4;
    const bool is_mine = row < rows && channel < channels;
    wait_for_previous_kernel();
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f}, b[4] = {}, s[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    if (is_mine && u) load_many(demod + (size_t)sample * demod_count + channel, d), load_many(bias + channel, b);
    if (is_mine && style) load_many(style + (size_t)sample * style_count + channel, s);
    float style_sum[4] = {}, demod_sum[4] = {};
#if RGB
    float w[COLOURS][4] = {}, rgb_s[4] = {}, rgb_sum[4] = {};
    const size_t first_plane = (size_t)sample * COLOURS * pixels;
    if (is_mine) {
        load_many(rgb_style + (size_t)sample * style_count + channel, rgb_s);
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) load_many(rgb_weight + k * channels + channel, w[k]);
    }
#endif
    // Opaque: of a choice of two inverses the compiler makes the inverse of a choice, a division for each number.
    const float up_inverse = opaque(1.0f / gain), down_inverse = opaque(1.0f / (SLOPE * gain));
    const size_t step = (size_t)gridDim.z * pixels * channels;
    const int end = min(pixels, ((int)blockIdx.x + 1) * pixels_per_block);
    if (is_mine)
        for (int pixel = blockIdx.x * pixels_per_block + row; pixel < end; pixel += rows) {
            const size_t place = ((size_t)sample * pixels + pixel) * channels + channel;
            float up[4] = {}, result[4], out[4];
#if RGB
            if (g)
#endif
                load_many(g + place, up);
#pragma unroll 8
            for (int slice = 1; slice < slices; ++slice) {
                float q[4];
                load_many(g + slice * step + place, q);
#pragma unroll
                for (int i = 0; i < 4; ++i) up[i] += q[i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) up[i] *= unit;
            load_many(z + place, result);
#if SKIP
            float output[4], skip[4] = {}, dh[4];
            load_many(h + place, output);
            if (skip_sums) load_many(skip_sums + place, skip);
#else
            const float(&output)[4] = result;
#endif
            const float n = noise ? noise[pixel] : 0.0f;
#if RGB
            float t[4] = {};
#pragma unroll
            for (int k = 0; k < COLOURS; ++k) {
                const size_t at = first_plane + (size_t)k * pixels + pixel;
                const float dy = fabsf(planes[at]) < rgb_clamp ? picture_gradient[at] * rgb_unit : 0.0f;
#pragma unroll
                for (int i = 0; i < 4; ++i) t[i] = fmaf(w[k][i], dy, t[i]);
            }
#endif
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                style_sum[i] = fmaf(output[i], up[i], style_sum[i]);
                float dz = up[i] * s[i];
#if RGB
                rgb_sum[i] = fmaf(output[i], t[i], rgb_sum[i]);
                dz = fmaf(t[i], rgb_s[i], dz);
#endif
#if SKIP
                dz = dh[i] = fmaf(skip_unit, skip[i], dz);
#endif
                const bool is_up = result[i] > 0.0f;
                const float dv = fabsf(result[i]) < clamp ? dz * (is_up ? gain : SLOPE * gain) : 0.0f;
                // Stored results are finite, so that the second factor is, beyond the clamp too.
                demod_sum[i] = fmaf(dv, fmaf(result[i], is_up ? up_inverse : down_inverse, -n - b[i]), demod_sum[i]);
                out[i] = dv * d[i];
            }
            if (u) store_many(u + place, out);
#if SKIP
            if (block_gradient) store_many(block_gradient + place, dh);
#endif
        }
#pragma unroll
    for (int i = 0; i < 4; ++i) demod_sum[i] /= d[i];
    const size_t own = (size_t)sample * sum_count + (size_t)blockIdx.x * channels + channel;
    if (style_sums) add_up(shared, style_sum, row, rows, lanes, is_mine ? style_sums + own : nullptr);
    if (demod_sums) add_up(shared, demod_sum, row, rows, lanes, is_mine ? demod_sums + own : nullptr);
#if RGB
    add_up(shared, rgb_sum, row, rows, lanes, is_mine ? rgb_sums + own : nullptr);
#endif
}
