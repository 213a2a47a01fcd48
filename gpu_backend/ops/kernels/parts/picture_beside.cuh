// Extra blocks of a launch add up a picture: a toRGB's parts and the upsampled previous picture, as in to_rgb.cu.
// Macros: IMG_CHANNELS, THREADS.
#pragma once
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

// Parameters of a kernel with such blocks, given by name in gpu_backend/cuda/launches/picture_beside.py.
#define PICTURE_PARAMETERS                                                                                            \
    const float* __restrict__ picture_parts, int picture_count, const float* __restrict__ picture_bias,               \
    float picture_clamp, const float* __restrict__ picture_previous, const float* __restrict__ picture_taps,          \
    float* __restrict__ picture_image, int picture_side, int grid_columns, int grid_rows, int picture_blocks

// Adds U(low) to a pixel, with four taps that include gain 2 per axis. Along an axis, output u is number (u - 1) / 2 of low times
// tap 3 (even u) or 2 (odd u), plus the next number times tap 1 or 0.
__device__ __forceinline__ void add_doubled_pixel(float (&v)[IMG_CHANNELS], const float* low, const float* taps, int side, int row, int column) {
    const int low_side = side >> 1, y = (row + 1 >> 1) - 1, x = (column + 1 >> 1) - 1;
    const float above = taps[row & 1 ? 2 : 3], below = taps[row & 1 ? 0 : 1];
    const float left = taps[column & 1 ? 2 : 3], right = taps[column & 1 ? 0 : 1];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            if (static_cast<unsigned>(y + i) >= static_cast<unsigned>(low_side) || static_cast<unsigned>(x + j) >= static_cast<unsigned>(low_side)) continue;
            const float* const from = low + (static_cast<long long>(y + i) * low_side + x + j) * IMG_CHANNELS;
            const float weight = (i == 0 ? above : below) * (j == 0 ? left : right);
#pragma unroll
            for (int c = 0; c < IMG_CHANNELS; ++c) v[c] += weight * from[c];
        }
    }
}

// Adds up a picture, in extra block `block` of `blocks`: image = clamp(sum of parts + bias) + U(previous).
// `parts`: (count, batch, side, side, IMG_CHANNELS); `previous` may be null.
__device__ __forceinline__ void add_up_picture(
    int block, int blocks, const float* parts, int count, const float* bias, float clamp, const float* previous, const float* taps,
    float* image, int batch, int side) {
    wait_for_previous_kernel();
    const int area = side * side, pixels = batch * area;
    for (int i = block * THREADS + static_cast<int>(threadIdx.x); i < pixels; i += blocks * THREADS) {
        const int sample = i / area, pixel = i - sample * area;
        float v[IMG_CHANNELS];
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) v[c] = 0.0f;
#pragma unroll 4
        for (int part = 0; part < count; ++part) {
#pragma unroll
            for (int c = 0; c < IMG_CHANNELS; ++c) v[c] += parts[(static_cast<long long>(part) * pixels + i) * IMG_CHANNELS + c];
        }
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) v[c] = bounded(v[c] + bias[c], clamp);
        if (previous != nullptr) {
            add_doubled_pixel(v, previous + static_cast<long long>(sample) * (area >> 2) * IMG_CHANNELS, taps, side, pixel / side, pixel % side);
        }
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) image[static_cast<long long>(i) * IMG_CHANNELS + c] = v[c];
    }
}

// The index of an extra block, -1 for the kernel's own blocks: extra blocks lie beyond `columns` or `rows` of the grid.
__device__ __forceinline__ int block_beside(int columns, int rows) {
    const int x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, more = static_cast<int>(gridDim.y) - rows;
    if (x >= columns) return x - columns + (static_cast<int>(gridDim.x) - columns) * (y + rows * z);
    return y >= rows ? x + columns * (y - rows + more * z) : -1;
}
