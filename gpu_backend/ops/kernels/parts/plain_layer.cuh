// The epilogue of the plain convolutions, from the sums in shared memory to the stores.
#pragma once
#include "parts/epilogue.cuh"
#include "parts/direct_conv.cuh"

__shared__ float tile_noise[TILE_PIXELS];

// Parameters of both plain convolutions besides SIZE_PARAMETERS, with the names of LAYER_PARAMETERS.
#define PLAIN_LAYER_PARAMETERS                                                                                        \
    const X* __restrict__ x, const void* __restrict__ weight, Y* y, T* y_raw, const float* __restrict__ demod,        \
    const float* __restrict__ next_style, const float* __restrict__ bias, const float* __restrict__ noise,            \
    const float* noise_gain, const unsigned* noise_source, float noise_strength, int noise_layer

struct Layer {
    Y* y;
    T* y_raw;
    const float* demod;
    const float* next_style;
    const float* bias;
    const float* strengths;  // per-channel strength of a StyleGAN1's noise
    int batch, side, cout, demod_stride, style_stride;
    float gain, clamp;
    const T* skip;      // with HAS_SKIP
    const float* taps;  // with HAS_SKIP
};

// The numbers of four channels; `fallback` where the layer has none.
__device__ __forceinline__ void load_or(const float* from, size_t place, float fallback, float (&v)[4]) {
    if (from != nullptr) {
        load_many<4>(from + place, v);
    } else {
        v[0] = v[1] = v[2] = v[3] = fallback;
    }
}

// Factor of the bias at a pixel. With BLURS_BIAS, StyleGAN1 adds it before the blur, which reads zeros beyond the border.
__device__ __forceinline__ float bias_share(int row, int column, int side) {
    if constexpr (!BLURS_BIAS) return 1.0f;
    return (row == 0 || row == side - 1 ? 0.75f : 1.0f) * (column == 0 || column == side - 1 ? 0.75f : 1.0f);
}

// Pixel `pixel` of the tile's grid of side `grid_side` is pixel (step * row + row_phase, step * column + column_phase)
// of the picture. All threads of the block call this, after direct_conv.
__device__ __forceinline__ void finish_tile(
    const Layer& layer, const LayerNoise& noise, int first_pixel, int first_channel, int grid_side, int step, int row_phase,
    int column_phase) {
    const int area = grid_side * grid_side;
    // The noise of a pixel is computed once, not by every thread that has some of its channels.
    for (int i = threadIdx.x; i < TILE_PIXELS; i += THREADS) {
        const int place = (first_pixel + i) % area;
        const int row = place / grid_side * step + row_phase, column = place % grid_side * step + column_phase;
        tile_noise[i] = noise.at(row * layer.side + column);
    }
    __syncthreads();
#pragma unroll 1
    for (int quad = threadIdx.x; quad < SUM_FLOATS / 4; quad += THREADS) {
        const int pixel_here = quad / (TILE_CHANNELS / 4), channel_here = quad % (TILE_CHANNELS / 4) * 4;
        const int channel = first_channel + channel_here;
        const int pixel = first_pixel + pixel_here, b = pixel / area, place = pixel - b * area;
        if (channel >= layer.cout || b >= layer.batch) continue;
        const int row = place / grid_side * step + row_phase, column = place % grid_side * step + column_phase;
        float v[4], demod[4], bias[4], strengths[4];
        four_sums(pixel_here, channel_here, v);
        load_or(layer.demod, (size_t)b * layer.demod_stride + channel, 1.0f, demod);
        load_or(layer.bias, channel, 0.0f, bias);
        load_or(layer.strengths, channel, 1.0f, strengths);
        const float share = bias_share(row, column, layer.side);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = finish(v[e], demod[e] * FP8_X_UNIT, tile_noise[pixel_here] * strengths[e], bias[e] * share, layer.gain, layer.clamp);
        if constexpr (HAS_SKIP) {
            const size_t half_side = layer.side >> 1;
            const T* low = layer.skip + b * half_side * half_side * layer.cout + channel;
            add_doubled<4>(v, low, layer.taps, layer.side, layer.cout, row, column);
        }
        const size_t to = (((size_t)b * layer.side + row) * layer.side + column) * layer.cout + channel;
        if (layer.y_raw != nullptr) store_many<4>(layer.y_raw + to, v);
        if (layer.y != nullptr) {
            float style[4];
            load_or(layer.next_style, (size_t)b * layer.style_stride + channel, 1.0f, style);
#pragma unroll
            for (int e = 0; e < 4; ++e) v[e] *= style[e] * FP8_Y_UNIT;
            store_many<4>(layer.y + to, v);
        }
    }
}
