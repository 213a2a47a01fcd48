// A convolution as a plain sum over taps and input channels, in fp32, for a tile of pixels and output channels per block:
//
//     sum[p][o] = sum over taps (ky, kx), channels c of x[b, row(p) + row_shift + ky, column(p) + column_shift + kx, c]
//                                                       * weight[ky * AXIS_TAPS + kx][c][o]
//
// x is 0 outside its picture. Macros:
//     TILE_PIXELS, TILE_CHANNELS, TILE_DEPTH   a block's tile in shared memory: pixels, output channels, input channels
//     PIXELS, CHANNELS                         a thread's sums, multiples of 4
//     GROUPS                                   groups of threads that have the same sums, each of its part of the depth
//     AXIS_TAPS                                taps along an axis
//     ODD_BORDER                               1: the last tap of an axis is at the pixel itself, at one border only
// Shared memory is double-buffered: while one buffer is multiplied, the next tile passes through registers. Afterwards the same
// memory holds the sums. The order of the additions is fixed.
#pragma once
#include "parts/e4m3.cuh"

// a: activations of a tile, [depth][pixel]. b: weights, [depth][channel]. Loads: of a thread, four floats each.
enum : int {
    GROUP_THREADS = TILE_PIXELS / PIXELS * (TILE_CHANNELS / CHANNELS),
    THREADS = GROUP_THREADS * GROUPS,
    A_QUADS = TILE_PIXELS * TILE_DEPTH / 4,
    B_QUADS = TILE_DEPTH * TILE_CHANNELS / 4,
    A_LOADS = (A_QUADS + THREADS - 1) / THREADS,
    B_LOADS = (B_QUADS + THREADS - 1) / THREADS,
    A_PITCH = TILE_PIXELS + 4,  // 4 more, so that columns lie in other banks
    A_FLOATS = TILE_DEPTH * A_PITCH,
    B_FLOATS = TILE_DEPTH * TILE_CHANNELS,
    BUFFER_FLOATS = 2 * (A_FLOATS + B_FLOATS),
    SUM_FLOATS = TILE_PIXELS * TILE_CHANNELS,
};

__shared__ __align__(16) float pool[BUFFER_FLOATS > GROUPS * SUM_FLOATS ? BUFFER_FLOATS : GROUPS * SUM_FLOATS];

// Quads of the buffers start at a multiple of 4 pixels or channels.
__device__ __forceinline__ float* a_at(int buffer, int depth, int pixel) {
    return pool + buffer * A_FLOATS + depth * A_PITCH + pixel;
}

__device__ __forceinline__ float* b_at(int buffer, int depth, int channel) {
    return pool + 2 * A_FLOATS + buffer * B_FLOATS + depth * TILE_CHANNELS + channel;
}

// Place in the tile of a thread's pixel or channel i: quads of neighbours, spread over the tile.
__device__ __forceinline__ int pixel_in_tile(int i) {
    const int thread = threadIdx.x % GROUP_THREADS / (TILE_CHANNELS / CHANNELS);
    return i / 4 * (TILE_PIXELS / (PIXELS / 4)) + thread * 4 + i % 4;
}

__device__ __forceinline__ int channel_in_tile(int i) {
    const int thread = threadIdx.x % GROUP_THREADS % (TILE_CHANNELS / CHANNELS);
    return i / 4 * (TILE_CHANNELS / (CHANNELS / 4)) + thread * 4 + i % 4;
}

// Sums of the block's tile: its first pixel is `first_pixel` of `batch` pictures of `side` x `side` one after the other. x has the
// side `side_in`. With ODD_BORDER, border_row and border_column are where the last taps apply. Synchronises the block; then
// four_sums returns the sums to any thread.
__device__ __forceinline__ void direct_conv(
    const X* x, const float* weight, int batch, int side_in, int side, int cin, int cout,
    int first_pixel, int first_channel, int row_shift, int column_shift, int border_row = 0, int border_column = 0) {
    const int thread = threadIdx.x, area = side * side;
    const int group = thread / GROUP_THREADS;

    const X* a_picture[A_LOADS];
    int a_row[A_LOADS], a_column[A_LOADS];
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
        const int quad = thread + i * THREADS, pixel = first_pixel + quad / (TILE_DEPTH / 4);
        const int b = pixel / area, place = pixel - b * area;
        a_picture[i] = x + (size_t)b * (side_in * side_in) * cin + quad % (TILE_DEPTH / 4) * 4;
        // A row far outside the picture gives zeros.
        a_row[i] = quad < A_QUADS && b < batch ? place / side + row_shift : -0x10000;
        a_column[i] = place % side + column_shift;
    }

    float a[A_LOADS][4], b[B_LOADS][4];
    int tap = 0, depth = 0;  // of the tile that `fetch` takes next

    auto fetch = [&]() {
        const int ky = tap / AXIS_TAPS, kx = tap % AXIS_TAPS;
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            int row, column;
            if constexpr (ODD_BORDER) {
                const int own_row = a_row[i] - row_shift, own_column = a_column[i] - column_shift;
                row = ky + 1 < AXIS_TAPS ? a_row[i] + ky : own_row == border_row ? own_row : -1;
                column = kx + 1 < AXIS_TAPS ? a_column[i] + kx : own_column == border_column ? own_column : -1;
            } else {
                row = a_row[i] + ky, column = a_column[i] + kx;
            }
            const int c = depth + (thread + i * THREADS) % (TILE_DEPTH / 4) * 4;
            if ((unsigned)row < (unsigned)side_in && (unsigned)column < (unsigned)side_in && c < cin) {
                load_many<4>(a_picture[i] + ((size_t)row * side_in + column) * cin + depth, a[i]);
            } else {
                a[i][0] = a[i][1] = a[i][2] = a[i][3] = 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int quad = thread + i * THREADS;
            const int c = depth + quad / (TILE_CHANNELS / 4), o = first_channel + quad % (TILE_CHANNELS / 4) * 4;
            if (quad < B_QUADS && c < cin && o < cout) {
                load_many<4>(weight + ((size_t)tap * cin + c) * cout + o, b[i]);
            } else {
                b[i][0] = b[i][1] = b[i][2] = b[i][3] = 0.0f;
            }
        }
        depth += TILE_DEPTH;
        if (depth >= cin) depth = 0, ++tap;
    };
    auto put = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int quad = thread + i * THREADS;
            if (A_QUADS % THREADS != 0 && quad >= A_QUADS) continue;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                *a_at(buffer, quad % (TILE_DEPTH / 4) * 4 + e, quad / (TILE_DEPTH / 4)) = a[i][e];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int quad = thread + i * THREADS;
            if (B_QUADS % THREADS != 0 && quad >= B_QUADS) continue;
            store_many<4>(b_at(buffer, quad / (TILE_CHANNELS / 4), quad % (TILE_CHANNELS / 4) * 4), b[i]);
        }
    };

    float sum[PIXELS][CHANNELS];
#pragma unroll
    for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int o = 0; o < CHANNELS; ++o) sum[p][o] = 0.0f;

    const int tiles = AXIS_TAPS * AXIS_TAPS * ((cin + TILE_DEPTH - 1) / TILE_DEPTH);
    fetch();
    put(0);
    __syncthreads();
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const int buffer = tile & 1;
        if (tile + 1 < tiles) fetch();
#pragma unroll
        for (int k = 0; k < TILE_DEPTH / GROUPS; ++k) {
            const int row = group * (TILE_DEPTH / GROUPS) + k;
            float pixels[PIXELS], channels[CHANNELS];
#pragma unroll
            for (int p = 0; p < PIXELS; p += 4) {
                float v[4];
                load_many<4>(a_at(buffer, row, pixel_in_tile(p)), v);
#pragma unroll
                for (int e = 0; e < 4; ++e) pixels[p + e] = v[e];
            }
#pragma unroll
            for (int o = 0; o < CHANNELS; o += 4) {
                float v[4];
                load_many<4>(b_at(buffer, row, channel_in_tile(o)), v);
#pragma unroll
                for (int e = 0; e < 4; ++e) channels[o + e] = v[e];
            }
#pragma unroll
            for (int p = 0; p < PIXELS; ++p)
#pragma unroll
                for (int o = 0; o < CHANNELS; ++o) sum[p][o] += pixels[p] * channels[o];
        }
        if (tile + 1 < tiles) {
            put(buffer ^ 1);
            __syncthreads();
        }
    }

    __syncthreads();
#pragma unroll
    for (int p = 0; p < PIXELS; ++p)
#pragma unroll
        for (int o = 0; o < CHANNELS; o += 4) {
            const float v[4] = {sum[p][o], sum[p][o + 1], sum[p][o + 2], sum[p][o + 3]};
            store_many<4>(pool + group * SUM_FLOATS + pixel_in_tile(p) * TILE_CHANNELS + channel_in_tile(o), v);
        }
    __syncthreads();
}

// Sums of four channels of a pixel of the tile.
__device__ __forceinline__ void four_sums(int pixel, int channel, float (&v)[4]) {
    load_many<4>(pool + pixel * TILE_CHANNELS + channel, v);
#pragma unroll
    for (int group = 1; group < GROUPS; ++group) {
        float more[4];
        load_many<4>(pool + group * SUM_FLOATS + pixel * TILE_CHANNELS + channel, more);
#pragma unroll
        for (int e = 0; e < 4; ++e) v[e] += more[e];
    }
}
