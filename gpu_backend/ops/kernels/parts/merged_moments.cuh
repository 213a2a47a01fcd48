// Merges the partial moments that the blocks of a StyleGAN1's convolution wrote (parts/moments.cuh), as in Chan et al. 1983.
#pragma once
#include "parts/types.cuh"

// Partials of a sample: mean and M2, [part][stride]. A part covers a rectangle of rows x columns pixels, cut off at the border of the
// picture; parts count row by row.
struct Partials {
    const float2* first;  // of the block's first channel
    int parts, stride, channels;  // channels: from the first one to the end
    int rows, columns, side;
};

// Sums of COUNT channels by all threads of a block, two channels each: thread t takes the parts t / (COUNT / 2), and every SLICES-th
// after it; LOADS are in flight. Sums are of deltas from the pivot, the first part's mean. The caller synchronises.
template <int COUNT, int SLICES, int LOADS>
__device__ __forceinline__ void sum_partials(const Partials& of, int tid, float2 (&sums)[SLICES][COUNT], float (&pivots)[COUNT]) {
    const int slice = tid / (COUNT / 2), pair = tid % (COUNT / 2) * 2, across = (of.side + of.columns - 1) / of.columns;
    const float2* const partials = of.first + pair;
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (pair < of.channels) {
        const float4 pivot = *reinterpret_cast<const float4*>(partials);
        for (int begin = slice; begin < of.parts; begin += LOADS * SLICES) {
            float4 part[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; ++k) {
                const int p = begin + k * SLICES;
                if (p < of.parts) part[k] = *reinterpret_cast<const float4*>(partials + (size_t)p * of.stride);
            }
#pragma unroll
            for (int k = 0; k < LOADS; ++k) {
                const int p = begin + k * SLICES;
                if (p >= of.parts) continue;
                const int down = p / across, right = p - down * across;
                const int rows = min(of.rows, of.side - down * of.rows), columns = min(of.columns, of.side - right * of.columns);
                const float pixels = (float)(rows * columns), low = part[k].x - pivot.x, high = part[k].z - pivot.z;
                total.x = fmaf(pixels, low, total.x), total.y += fmaf(pixels * low, low, part[k].y);
                total.z = fmaf(pixels, high, total.z), total.w += fmaf(pixels * high, high, part[k].w);
            }
        }
        if (slice == 0) pivots[pair] = pivot.x, pivots[pair + 1] = pivot.z;
    }
    *reinterpret_cast<float4*>(&sums[slice][pair]) = total;
}

// Mean and variance of a channel, after sum_partials and a barrier; undefined for channels beyond the last.
template <int COUNT, int SLICES>
__device__ __forceinline__ float2 mean_and_variance(int channel, int side, const float2 (&sums)[SLICES][COUNT], const float (&pivots)[COUNT]) {
    const float area = (float)(side * side);
    float sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int s = 0; s < SLICES; ++s) sum += sums[s][channel].x, square += sums[s][channel].y;
    const float delta = sum / area, rest = square - sum * delta;
    return make_float2(pivots[channel] + delta, (rest < 0.0f ? 0.0f : rest) / area);
}
