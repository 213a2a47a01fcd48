// Demodulation of every layer: demod[o] = 1 / sqrt(sum_i style_i^2 Q[o, i] + 1e-8), Q the squares of the weights summed over
// taps, fp16 divided by SQUARES_UNIT; one warp a row of Q. The first layer's blocks also write its input: constant * style, fp16.
// Grid: groups of 8 rows, layers, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define WARPS 8
#define EPSILON 1e-8f

extern "C" __global__ void __launch_bounds__(32 * WARPS) gradient_demod(
    const float* __restrict__ styles, const half_bits* __restrict__ squares, const int* __restrict__ table,
    float* __restrict__ demods, const half_bits* __restrict__ constant, half_bits* __restrict__ x, int constant_size,
    int style_count, int demod_count) {
    wait_for_previous_kernel();
    const int* layer = table + blockIdx.y * LAYER_INTS;
    const int inputs = layer[INPUTS];
    const float* style = styles + (size_t)blockIdx.z * style_count + layer[STYLE];
    if (blockIdx.y == 0)
        for (int i = blockIdx.x * 32 * WARPS + threadIdx.x; i < constant_size; i += gridDim.x * 32 * WARPS)
            x[(size_t)blockIdx.z * constant_size + i] = to_half(from_half(constant[i]) * style[i % inputs]);
    const int channel = blockIdx.x * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (channel >= layer[OUTPUTS]) return;
    const half_bits* row = squares + layer[SQUARES] + (size_t)channel * inputs;
    float sum = 0.0f;
#pragma unroll 2
    for (int first = lane * 8; first < inputs; first += 32 * 8) {
        float q[8], s[8];
        load_many(row + first, q);
        load_many(style + first, s);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum = fmaf(q[i], s[i] * s[i], sum);
    }
    sum = warp_total(sum) * __int_as_float(layer[SQUARES_UNIT]);
    if (lane == 0) demods[(size_t)blockIdx.z * demod_count + layer[DEMOD] + channel] = rsqrtf(sum + EPSILON);
}
