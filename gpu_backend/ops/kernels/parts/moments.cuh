// Per-channel moments of a block's pixels from the epilogue of a StyleGAN1's convolution, for the normalisation after it
// (adain.cu): mean and M2, the sum of squared distances from the mean. A thread sums eight channels as deltas from a pivot, a
// pixel that its warp has seen, so that a channel of low variance keeps its digits. Deltas are halved, since fp16 holds half
// the difference of any two of its numbers. Partials of warps are merged as in Chan et al. 1983.
//
// Macros: CHANNELS (8 times a power of two), THREADS.
#pragma once
#include "parts/types.cuh"
#include "parts/halves.cuh"

enum : int {
    MOMENT_GROUPS = CHANNELS / 8,
    MOMENT_WARPS = THREADS / 32,
};
enum : unsigned {  // words of two fp16 numbers
    HALVES = 0x38003800u,
    MINUS_HALVES = 0xB800B800u,
};

struct Moments {
    float* sums;        // [MOMENT_WARPS][2][CHANNELS] in shared memory, then their pivots: [MOMENT_WARPS][CHANNELS]
    unsigned pivot[4];  // minus half a pixel's channels
    float values[16];   // of a thread's channels in a row tile: sums, then sums of squares
    int tid;

    // One object a row tile: state that lasts longer lies in shared memory, which leaves the registers to the convolution.
    __device__ __forceinline__ explicit Moments(void* place) : sums(reinterpret_cast<float*>(place)), tid(opaque(threadIdx.x)) {
#pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) pivot[i] = 0u;
    }

    __device__ __forceinline__ half_bits* pivots(int warp) const {
        return reinterpret_cast<half_bits*>(sums + 2 * MOMENT_WARPS * CHANNELS) + warp * CHANNELS;
    }

    __device__ __forceinline__ void set_pivot(const unsigned (&pixel)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) pivot[i] = multiply_add2(pixel[i], MINUS_HALVES, 0u);
    }

    __device__ __forceinline__ void set_pivot(const half_bits* pixel) {
        const uint4 words = *reinterpret_cast<const uint4*>(pixel);
        set_pivot({words.x, words.y, words.z, words.w});
    }

    // Before the first `add` of a row tile: the pivot of all warps is the block's first pixel, whose channels begin at `store`.
    __device__ __forceinline__ void begin_row_tile(const unsigned char* store, bool is_first) {
        half_bits* const kept = pivots(0) + tid % MOMENT_GROUPS * 8;
        const half_bits* const pixel = is_first ? reinterpret_cast<const half_bits*>(store) + tid % MOMENT_GROUPS * 8 : kept;
        set_pivot(pixel);
        if (is_first && tid < MOMENT_GROUPS) *reinterpret_cast<uint4*>(kept) = *reinterpret_cast<const uint4*>(pixel);
    }

    __device__ __forceinline__ void add(const unsigned (&pixel)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float low, high;
            from_half2(multiply_add2(pixel[i], HALVES, pivot[i]), low, high);
            values[2 * i] += low, values[2 * i + 1] += high;
            values[2 * i + 8] = fmaf(low, low, values[2 * i + 8]), values[2 * i + 9] = fmaf(high, high, values[2 * i + 9]);
        }
    }

    // Reduces over the threads of a warp that have the same channels: in every turn, a thread passes on half of its values.
    __device__ __forceinline__ void end_row_tile(bool is_first) {
        const int lane = tid & 31, group = lane % MOMENT_GROUPS;
#pragma unroll
        for (int turn = 0; turn < 4; ++turn) {
            const int other = 16 >> turn, half = 8 >> turn;
            if (other < MOMENT_GROUPS) continue;
            const bool is_upper = lane & other;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (i >= half) continue;
                const float sent = is_upper ? values[i] : values[i + half], kept = is_upper ? values[i + half] : values[i];
                values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, other);
            }
        }
        const int first = lane / MOMENT_GROUPS * (MOMENT_GROUPS / 2);
        float* const to = sums + (tid / 32 * 2 + first / 8) * CHANNELS + group * 8 + first % 8;
#pragma unroll
        for (int i = 0; i < MOMENT_GROUPS / 2; ++i) to[i] = values[i] + (is_first ? 0.0f : to[i]);
    }

    // Writes mean and M2 of the block's pixels for `channels` channels. count_of(warp): pixels that the warp has summed.
    // pivot_stride: 0 if all warps use the pivot of the first, else CHANNELS. All threads call this.
    template <typename CountOf>
    __device__ __forceinline__ void store(float2* to, int channels, int pivot_stride, CountOf count_of) const {
        __syncthreads();
        for (int c = tid; c < channels; c += THREADS) {
            const float first_pivot = from_half(pivots(0)[c]);
            float sum = 0.0f, square = 0.0f, count = 0.0f;
#pragma unroll 1
            for (int w = 0; w < MOMENT_WARPS; ++w) {
                const float own = 2.0f * sums[w * 2 * CHANNELS + c], own_square = 4.0f * sums[(w * 2 + 1) * CHANNELS + c];
                const float pixels = (float)count_of(w);
                const float delta = pixels > 0.0f ? from_half(pivots(0)[w * pivot_stride + c]) - first_pivot : 0.0f;
                sum += fmaf(pixels, delta, own);
                square += fmaf(delta, fmaf(pixels, delta, 2.0f * own), own_square);
                count += pixels;
            }
            const float delta = sum / count, rest = square - sum * delta;
            to[c] = make_float2(first_pivot + delta, rest < 0.0f ? 0.0f : rest);
        }
    }
};
