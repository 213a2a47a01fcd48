// The gradient of a block's input besides that of its first convolution: the adjoint of the filter with stride 2 before its skip, and the
// gradient of the input as a map of the loss.
//
//     v[y, x] += sum_ij f[i] f[j] from[(y + i - left) / 2, (x + j - left) / 2] where both are whole
//              + level * scale[sample] * (along map[y, x] + across wanted[y, x])
//
// `from` is [sample][side / 2][side / 2][channels], `numbers` along and across of each place as discriminator_distance leaves them, map and
// wanted are [sample][side][side][channels]; all but numbers are fp16. `from` and `map` may be null. Macro TAPS: of the filter.
#pragma once

#define DISCRIMINATOR_JOIN_PARAMETERS                                                                               \
    const half_bits* __restrict__ from, const float* __restrict__ filter, const half_bits* __restrict__ map,        \
        const half_bits* __restrict__ wanted, const float* __restrict__ numbers, const float* __restrict__ scale,   \
        int left, float level
#define DISCRIMINATOR_JOIN_ARGUMENTS from, filter, map, wanted, numbers, scale, left, level

enum : int { MOST_PAIRS = (TAPS + 1) / 2 };  // of a tap and a sample along an axis

// The sample of the nearest tap but `number` that meets one along an axis, from the place of the first tap on, and this tap's share.
__device__ __forceinline__ int met_sample(const float* filter, int first, int number, int half_side, float& share) {
    const int tap = (first & 1) + 2 * number, place = (first + tap) >> 1, safe_place = min(max(place, 0), half_side - 1);
    share = tap < TAPS && place == safe_place ? filter[tap] : 0.0f;
    return safe_place;
}

// Of eight channels of ROWS pixels below each other.
template <int ROWS>
__device__ __forceinline__ void join(
    float (&v)[ROWS][8], int sample, int y, int x, int side, int channel, int channels, DISCRIMINATOR_JOIN_PARAMETERS) {
    if (from) {
        const int half_side = side / 2;
        const half_bits* whole = from + (size_t)sample * half_side * half_side * channels + channel;
#pragma unroll
        for (int below = 0; below < ROWS; ++below) {
#pragma unroll
            for (int i = 0; i < MOST_PAIRS; ++i) {
                float row_share;
                const int row = met_sample(filter, y + below - left, i, half_side, row_share);
#pragma unroll
                for (int j = 0; j < MOST_PAIRS; ++j) {
                    // No branch around the load, so that many are under way together.
                    float share, q[8];
                    const int column = met_sample(filter, x - left, j, half_side, share);
                    share *= row_share;
                    load_many(whole + (size_t)(row * half_side + column) * channels, q);
#pragma unroll
                    for (int k = 0; k < 8; ++k) v[below][k] = fmaf(share, q[k], v[below][k]);
                }
            }
        }
    }
    if (map) {
#pragma unroll
        for (int below = 0; below < ROWS; ++below) {
            const size_t at = ((size_t)sample * side + min(y + below, side - 1)) * side + x, place = at * channels + channel;
            const float factor = level * scale[sample], along = factor * numbers[2 * at], across = factor * numbers[2 * at + 1];
            float q[8], w[8];
            load_many(map + place, q);
            load_many(wanted + place, w);
#pragma unroll
            for (int k = 0; k < 8; ++k) v[below][k] += fmaf(along, q[k], across * w[k]);
        }
    }
}
