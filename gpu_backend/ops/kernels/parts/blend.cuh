// A blend with one second latent in the epilogue of a convolution (gpu_backend/ops/blend_samples.py):
//     v += m (second - v)
// second: (side, side, channels), kept from an earlier run; mask: (mask_side, mask_side), mask_step: mask_side / side. Macro HAS_BLEND: 1 with HALF alone.
// Layers with more blends have blend_samples.cu behind them: their masks would take registers that convolutions do not have.
#pragma once
#include "parts/types.cuh"
#include "parts/masks.cuh"

static_assert(HALF || !HAS_BLEND, "words of two numbers are blended");

#define BLEND_PARAMETERS const T* __restrict__ second, const float* __restrict__ mask, int mask_side, float mask_step

// N neighbouring words of fp16, at a multiple of min(4 N, 16) bytes.
template <int N>
__device__ __forceinline__ void load_neighbours(const T* from, unsigned (&words)[N]) {
    if constexpr (N == 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(from);
        words[0] = four.x, words[1] = four.y, words[N - 2] = four.z, words[N - 1] = four.w;
    } else if constexpr (N == 2) {
        const uint2 two = *reinterpret_cast<const uint2*>(from);
        words[0] = two.x, words[N - 1] = two.y;
    } else {
        static_assert(N == 1, "1, 2 or 4 words");
        words[0] = *reinterpret_cast<const unsigned*>(from);
    }
}

// Brings `count` numbers, a multiple of 8, to the second-level cache, before Hopper a sector of them: with all of DRAM's latency at its
// end, a convolution of 1024 x 1024 took twice as long.
__device__ __forceinline__ void prefetch(const T* from, int count) {
#if LEVEL >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(count * static_cast<int>(sizeof(T))) : "memory");
#else
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#endif
}

__device__ __forceinline__ unsigned blended_word(unsigned word, unsigned other, float share) {
    float low, high, other_low, other_high;
    from_half2(word, low, high), from_half2(other, other_low, other_high);
    return to_half2(blended(low, other_low, share), blended(high, other_high, share));
}

// Blends the words of a pixel's neighbouring channels with those of the second latent. `share`: the mask there.
template <int N>
__device__ __forceinline__ void blend_words(unsigned (&words)[N], const T* second, float share) {
    if (share == 0.0f) return;
    unsigned others[N];
    load_neighbours(second, others);
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = blended_word(words[i], others[i], share);
}
