// What the sums of a convolution begin with where the normalisation of its input is in its weights (fold_adain.cu): constants of the taps,
// of those that lie inside the picture.
// Constant of the kernel: THREADS.
#pragma once
#include "parts/types.cuh"

// Of WIDTH channels: [3 * row + column][channel], 0 at the first row or column of the picture, 2 at the last, 1 between them.
// Constants are fetched first and stored later, so that nothing waits for them.
template <int WIDTH>
struct StartConstants {
    enum : int { COUNT = 9 * WIDTH, TURNS = (COUNT + THREADS - 1) / THREADS };
    float values[TURNS];  // a thread's constants of taps

    // Adds up `parts` parts of `rows` numbers a tap.
    __device__ __forceinline__ void fetch(const float* tap_sums, int parts, int rows, int first_channel, int tid) {
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) values[turn] = 0.0f;
#pragma unroll 2
        for (int part = 0; part < parts; ++part) {
            const float* const from = tap_sums + (size_t)part * 9 * rows + first_channel;
#pragma unroll
            for (int turn = 0; turn < TURNS; ++turn) {
                const int i = tid + turn * THREADS;
                if (COUNT % THREADS == 0 || i < COUNT) values[turn] += from[i / WIDTH * rows + i % WIDTH];
            }
        }
    }

    // Writes the constants of the taps. The caller synchronises.
    __device__ __forceinline__ void store(float (&to)[9][WIDTH], int tid) const {
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int i = tid + turn * THREADS;
            if (COUNT % THREADS == 0 || i < COUNT) to[i / WIDTH][i % WIDTH] = values[turn];
        }
    }

    // Replaces them by their sums at each place of a picture. The caller synchronises.
    __device__ __forceinline__ static void add_up_taps(float (&starts)[9][WIDTH], int tid) {
        for (int i = tid; i < WIDTH; i += THREADS) {
            float taps[9];
#pragma unroll
            for (int tap = 0; tap < 9; ++tap) taps[tap] = starts[tap][i];
#pragma unroll
            for (int at = 0; at < 9; ++at) {
                float sum = 0.0f;
#pragma unroll
                for (int tap = 0; tap < 9; ++tap) {
                    const bool is_row_inside = !(at / 3 == 0 && tap / 3 == 0) && !(at / 3 == 2 && tap / 3 == 2);
                    const bool is_column_inside = !(at % 3 == 0 && tap % 3 == 0) && !(at % 3 == 2 && tap % 3 == 2);
                    if (is_row_inside && is_column_inside) sum += taps[tap];
                }
                starts[at][i] = sum;
            }
        }
    }
};
