// The first layer of a discriminator: out[c] = lrelu(sum_k W[k, c] picture[k] + bias[c]).
//
// The picture is [sample][COLOURS][side][side] fp32, W fp32, out [sample][side][side][channels] fp16, mask has its signs. Macro COLOURS. A thread does eight
// channels of four neighbouring pixels. Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_signs.cuh"

enum : int { THREADS = 256, PIXELS = 4 };

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_rgb(
    const float* __restrict__ picture, const float* __restrict__ weight, const float* __restrict__ bias, half_bits* __restrict__ out,
    signs_byte* __restrict__ mask, int pixels, int channels) {
    const int groups = channels >> 3, index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= pixels / PIXELS * groups) return;
    const int channel = 8 * (index % groups), pixel = PIXELS * (index / groups);
    float b[8], w[COLOURS][8], colour[COLOURS][PIXELS];
    load_many(bias + channel, b);
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) load_many(weight + k * channels + channel, w[k]);
    wait_for_previous_kernel();
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) load_many(picture + ((size_t)blockIdx.y * COLOURS + k) * pixels + pixel, colour[k]);
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[i] = b[i];
#pragma unroll
            for (int k = 0; k < COLOURS; ++k) v[i] = fmaf(w[k][i], colour[k][p], v[i]);
            v[i] = v[i] > 0.0f ? v[i] : ACTIVATION_SLOPE * v[i];
        }
        const size_t place = ((size_t)blockIdx.y * pixels + pixel + p) * channels + channel;
        store_many(out + place, v);
        mask[place / 8] = signs_of(v);
    }
}
