// The gradient of a block's input besides that of its first convolution: the adjoint of the filter with stride 2 before its skip, and the
// gradient of the input as a map of the loss.
//
//     v[y, x] += sum_ij f[i] f[j] from[(y + i - left) / 2, (x + j - left) / 2] where both are whole
//              + level * scale[sample] * (along map[y, x] + across wanted[y, x])
//
// `from` is [sample][side / 2][side / 2][channels], `numbers` along and across of each place as discriminator_distance leaves them, map and
// wanted are [sample][side][side][channels]; all but numbers are fp16. `from` and `map` may be null. Macro TAPS: of the filter.
#pragma once
#include "parts/gradient_constants.cuh"

#define DISCRIMINATOR_JOIN_PARAMETERS                                                                               \
    const half_bits* __restrict__ from, const float* __restrict__ filter, const half_bits* __restrict__ map,        \
        const half_bits* __restrict__ wanted, const float* __restrict__ numbers, const float* __restrict__ scale,   \
        int left, float level
#define DISCRIMINATOR_JOIN_ARGUMENTS from, filter, map, wanted, numbers, scale, left, level

enum : int { MOST_PAIRS = (TAPS + 1) / 2 };  // of a tap and a sample along an axis

// What eight channels of a pixel need of it from memory. It is loaded at once, so that all of it is under way together.
struct JoinedInputs {
    uint4 from[MOST_PAIRS][MOST_PAIRS], map, wanted;
    float row_shares[MOST_PAIRS], column_shares[MOST_PAIRS];
    float2 numbers;
};

// The sample of the nearest tap that meets one along an axis, and this tap's share.
__device__ __forceinline__ int met_sample(const float* filter, int first, int number, int half_side, float& share) {
    const int tap = (first & 1) + 2 * number, place = (first + tap) >> 1, safe_place = min(max(place, 0), half_side - 1);
    share = tap < TAPS && place == safe_place ? filter[tap] : 0.0f;
    return safe_place;
}

__device__ __forceinline__ void load_joined(
    JoinedInputs& inputs, int sample, int y, int x, int side, int channel, int channels, DISCRIMINATOR_JOIN_PARAMETERS) {
    if (from) {
        const int half_side = side / 2;
        const half_bits* whole = from + (size_t)sample * half_side * half_side * channels + channel;
        int columns[MOST_PAIRS];
#pragma unroll
        for (int j = 0; j < MOST_PAIRS; ++j) columns[j] = met_sample(filter, x - left, j, half_side, inputs.column_shares[j]);
#pragma unroll
        for (int i = 0; i < MOST_PAIRS; ++i) {
            const int row = met_sample(filter, y - left, i, half_side, inputs.row_shares[i]);
#pragma unroll
            for (int j = 0; j < MOST_PAIRS; ++j)
                inputs.from[i][j] = *reinterpret_cast<const uint4*>(whole + (row * half_side + columns[j]) * channels);
        }
    }
    if (map) {
        const size_t first = (size_t)sample * side * side, place = first * channels + ((y * side + x) * channels + channel);
        inputs.map = *reinterpret_cast<const uint4*>(map + place);
        inputs.wanted = *reinterpret_cast<const uint4*>(wanted + place);
        inputs.numbers = *reinterpret_cast<const float2*>(numbers + 2 * (first + (y * side + x)));
    }
}

// `factor` is level * scale of the sample.
__device__ __forceinline__ void add_joined(float (&v)[8], const JoinedInputs& inputs, bool has_from, bool has_map, float factor) {
    float q[8], w[8];
    if (has_from) {
#pragma unroll
        for (int i = 0; i < MOST_PAIRS; ++i)
#pragma unroll
            for (int j = 0; j < MOST_PAIRS; ++j) {
                const float share = inputs.row_shares[i] * inputs.column_shares[j];
                from_half8(inputs.from[i][j], q);
#pragma unroll
                for (int k = 0; k < 8; ++k) v[k] = fmaf(share, q[k], v[k]);
            }
    }
    if (has_map) {
        const float along = factor * inputs.numbers.x, across = factor * inputs.numbers.y;
        from_half8(inputs.map, q), from_half8(inputs.wanted, w);
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] += fmaf(along, q[k], across * w[k]);
    }
}
