// Adds offsets to the styles (gpu_backend/ops/styles.py) that styles.cu wrote, and recomputes what depends on them. Names as in styles.cu.
//     toRGB, StyleGAN1:   style = style + offset
//     convolutions:       s = raw u + offset,   style = s / m,   demod[o] = m 2^e / sqrt(sum_i s_i^2 W2[o, i] + 1e-8)
//     x0 = constant * style of the first convolution
// u normalises a style to unit length if the slot's kind is 2 (StyleGAN3), else it is 1; m = max_i |s_i|.
//
// A slot is 12 integers, made by gpu_backend/cuda/launches/shift_styles.py:
//     0 kind (0: no demodulation, 1: demodulation, 2: also unit length)   1 first style      2 channels
//     3 first offset    4 first coefficient    5 coefficients, padded    6 first group of W2    7 groups per row
//     8 first row of terms    9 1: the slot styles x0    10, 11 unused
// Macros: HALF, LANES: threads that share a row of W2, 1 or 32. Grid: slots; blocks of ROWS coefficients; samples.
// Shared memory: the longest style of all slots, padded.
#include "parts/types.cuh"

#define EPSILON 1e-8f
enum : int {
    PIXELS = 16,
    ROWS = 64,
    THREADS = 256,
};

// The sum, or with `largest` the maximum, over a block; every thread gets it.
__device__ __forceinline__ float over_block(float v, bool largest, float* shared) {
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) {
        const float theirs = __shfl_xor_sync(0xffffffffu, v, other);
        v = largest ? fmaxf(v, theirs) : v + theirs;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
    for (int i = 1; i < THREADS / 32; ++i) v = largest ? fmaxf(v, shared[i]) : v + shared[i];
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS) shift_styles(
    const float* __restrict__ offsets, const T* __restrict__ table, const float2* __restrict__ terms,
    const int* __restrict__ slots, const float* __restrict__ constant, const float* __restrict__ raw,
    float* __restrict__ style, float* __restrict__ demod, T* __restrict__ x0, int style_stride, int demod_stride) {
    extern __shared__ float s[];
    __shared__ float partials[THREADS / 32];
    const int* const slot = slots + 12 * blockIdx.x;
    const int kind = slot[0], channels = slot[2], padded = (channels + 7) / 8 * 8, coefficients = slot[5];
    const size_t sample = blockIdx.z;
    const bool is_first = blockIdx.y == 0;
    float* const to = style + sample * style_stride + slot[1];
    if (kind == 0) {
        if (is_first)
            for (int i = threadIdx.x; i < channels; i += THREADS) to[i] += offsets[slot[3] + i];
        return;
    }
    const int first_row = blockIdx.y * ROWS;
    if (first_row >= coefficients && !is_first) return;

    const float* const from = raw + sample * style_stride + slot[1];
    float squares = 0.0f;
    for (int i = threadIdx.x; i < channels; i += THREADS) squares += from[i] * from[i];
    squares = over_block(squares, false, partials);
    const float unit = kind == 2 ? rsqrtf(squares / channels) : 1.0f;
    float peak = 0.0f;
    for (int i = threadIdx.x; i < padded; i += THREADS) {
        s[i] = i < channels ? fmaf(from[i], unit, offsets[slot[3] + i]) : 0.0f;
        peak = fmaxf(peak, fabsf(s[i]));
    }
    peak = over_block(peak, true, partials);  // its barriers make the style whole for every thread
    const float inverse = peak == 0.0f ? 0.0f : 1.0f / peak;
    if (is_first) {
        for (int i = threadIdx.x; i < padded; i += THREADS) to[i] = s[i] * inverse;
        if (slot[9])
            for (int i = threadIdx.x; i < PIXELS * padded; i += THREADS) {
                float v[1] = {constant[i] * (s[i % padded] * inverse)};
                store_many<1>(x0 + sample * PIXELS * padded + i, v);
            }
    }
    const int group = HALF ? 8 : 4, lane = threadIdx.x % LANES;
    const int columns = slot[7] * group;
    for (int row = first_row + threadIdx.x / LANES; row < min(first_row + ROWS, coefficients); row += THREADS / LANES) {
        const T* const weights = table + ((size_t)slot[6] + (size_t)row * slot[7]) * group;
        float total = 0.0f;
        for (int i = lane; i < min(columns, padded); i += LANES) {
            float w[1];
            load_many<1>(weights + i, w);
            total += s[i] * s[i] * w[0];
        }
#pragma unroll
        for (int other = LANES / 2; other > 0; other /= 2) total += __shfl_xor_sync(0xffffffffu, total, other);
        const float2 term = terms[slot[8] + row];
        if (lane == 0)
            demod[sample * demod_stride + slot[4] + row] = rsqrtf(fmaf(total, term.x, EPSILON)) * peak * term.y;
    }
}
