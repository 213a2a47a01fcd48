// A 1 x 1 convolution of fp16 pixels to COLOURS planes in fp32. LANES threads do a pixel, eight channels of it at a time, and four pixels
// together: a warp does WARP_PIXELS neighbouring ones. Macros: COLOURS; LANES, 4 to 32: more keep the device busy where pixels are few.
#pragma once
#include "parts/types.cuh"

enum : int {
    TURNS = 4,
    STEPS = LANES == 32 ? 2 : 1,  // of LANES * 8 channels, whose loads are under way together
    WARP_PIXELS = TURNS * 32 / LANES,
    SHARERS = LANES / TURNS,  // threads that have a pixel's sums in the end
};

// Eight channels of each pixel and step. Pixels beyond `count` repeat the last one, so that no branch is around a load.
__device__ __forceinline__ void load_pixels(const half_bits* from, int channel, int channels, int count, uint4 (&v)[STEPS][TURNS]) {
    const int first = threadIdx.x % 32 / LANES;
#pragma unroll
    for (int step = 0; step < STEPS; ++step, channel += LANES * 8)
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int pixel = min(first + turn * (32 / LANES), count - 1);
            v[step][turn] = *reinterpret_cast<const uint4*>(from + (size_t)pixel * channels + min(channel, channels - 8));
        }
}

// The warp's pixel of which this thread has the sums.
__device__ __forceinline__ int own_pixel() { return threadIdx.x % 32 / LANES + threadIdx.x % LANES / SHARERS * (32 / LANES); }

// sum_c weights[k, c] from[pixel, c] of the own pixel. `v` has the first steps, weights lie in shared memory.
__device__ __forceinline__ void sum_colours(
    const half_bits* from, const float* weights, int channels, int count, uint4 (&v)[STEPS][TURNS], float (&sum)[COLOURS]) {
    const int lane = threadIdx.x % LANES;
    float sums[TURNS][COLOURS] = {};
    for (int channel = lane * 8;;) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step, channel += LANES * 8) {
            if (channel >= channels) break;
#pragma unroll
            for (int quad = 0; quad < 8; quad += 4) {  // of eight channels together, registers would be few
                float x[TURNS][4], w[4];
#pragma unroll
                for (int turn = 0; turn < TURNS; ++turn) {
                    const uint4& words = v[step][turn];
                    from_half2(quad ? words.z : words.x, x[turn][0], x[turn][1]), from_half2(quad ? words.w : words.y, x[turn][2], x[turn][3]);
                }
#pragma unroll
                for (int k = 0; k < COLOURS; ++k) {
                    load_many(weights + k * channels + channel + quad, w);
#pragma unroll
                    for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
                        for (int i = 0; i < 4; ++i) sums[turn][k] = fmaf(x[turn][i], w[i], sums[turn][k]);
                }
            }
        }
        if (channel >= channels) break;
        load_pixels(from, channel, channels, count, v);
    }
    // Each exchange halves the pixels of a thread, then adds up its own.
#pragma unroll
    for (int kept = TURNS / 2, other = LANES / 2; kept > 0; kept /= 2, other /= 2) {
        const bool is_upper = threadIdx.x & other;
#pragma unroll
        for (int turn = 0; turn < kept; ++turn)
#pragma unroll
            for (int k = 0; k < COLOURS; ++k) {
                const float given = is_upper ? sums[turn][k] : sums[turn + kept][k];
                sums[turn][k] = (is_upper ? sums[turn + kept][k] : sums[turn][k]) + __shfl_xor_sync(0xffffffffu, given, other);
            }
    }
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) {
        sum[k] = sums[0][k];
#pragma unroll
        for (int other = SHARERS / 2; other > 0; other /= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], other);
    }
}
