// Distance of feature maps whose channels have unit length at each place, and its gradient:
//
//     found: x / sqrt(sum_c x_c^2 + least),   parts = sums of |found - wanted|^2 over places,   gradient = weight d(that)/dx
//
// x and gradient are [sample][channels][places], or [sample][places][channels] if `channels_last`; `wanted`, of unit length
// already, is alike. Eight threads a place. Grid: groups of 32 places, samples; block of 256 threads.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define PLACES 32
#define GROUPS 8

extern "C" __global__ void __launch_bounds__(PLACES* GROUPS) gradient_map(
    const float* __restrict__ x, const float* __restrict__ wanted, float* __restrict__ gradient, float* __restrict__ parts,
    int channels, int places, int channels_last, float least, float weight) {
    __shared__ float sums[3][GROUPS][PLACES];
    // Neighbouring threads read neighbouring numbers.
    const int slot = channels_last ? threadIdx.x / GROUPS : threadIdx.x % PLACES;
    const int group = channels_last ? threadIdx.x % GROUPS : threadIdx.x / PLACES;
    const int place = blockIdx.x * PLACES + slot, place_step = channels_last ? channels : 1;
    const int channel_step = channels_last ? 1 : places;
    const bool is_mine = place < places;
    const size_t first = (size_t)blockIdx.y * channels * places + (size_t)place * place_step;
    wait_for_previous_kernel();
    float squares = 0.0f, products = 0.0f, others = 0.0f;
    if (is_mine)
#pragma unroll 4
        for (int c = group; c < channels; c += GROUPS) {
            const float v = x[first + (size_t)c * channel_step], w = wanted[first + (size_t)c * channel_step];
            squares = fmaf(v, v, squares), products = fmaf(v, w, products), others = fmaf(w, w, others);
        }
    sums[0][group][slot] = squares, sums[1][group][slot] = products, sums[2][group][slot] = others;
    __syncthreads();
    squares = products = others = 0.0f;
#pragma unroll
    for (int i = 0; i < GROUPS; ++i)
        squares += sums[0][i][slot], products += sums[1][i][slot], others += sums[2][i][slot];
    // |x r - w|^2 with r = 1 / sqrt(n + least): n r^2 - 2 p r + |w|^2
    const float r = rsqrtf(squares + least);
    const float distance = is_mine ? squares * r * r - 2.0f * products * r + others : 0.0f;
    const float along = 2.0f * r * (r - squares * r * r * r + products * r * r), across = -2.0f * r;
    if (is_mine)
#pragma unroll 4
        for (int c = group; c < channels; c += GROUPS) {
            const size_t at = first + (size_t)c * channel_step;
            gradient[at] = weight * fmaf(along, x[at], across * wanted[at]);
        }
    // The sums of all threads' places, of which each counts once.
    __syncthreads();
    if (group == 0) sums[0][0][slot] = distance;
    __syncthreads();
    if (threadIdx.x >= PLACES) return;
    const float total = warp_total(sums[0][0][threadIdx.x]);
    if (threadIdx.x == 0) parts[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = total;
}
