// The handles' part of a drag's loss: unit * sum over the points q of a patch and channels of |F(position + q) - template(q)|.
// Adds its gradient to that of the features, and leaves each point's sum of differences in `differences`, [handle][point].
// `used` of the channels are no padding. Differences within `slack` are rounding, and have no gradient: Adam would make a
// whole step of it. Grid: points of a patch, handles.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_handle.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) gradient_handles(
    const half_bits* __restrict__ features, const float* __restrict__ states, const float* __restrict__ templates,
    float* __restrict__ gradient, float* __restrict__ differences, int side, int channels, int used, int radius, float unit,
    float slack) {
    __shared__ float warps[THREADS / 32];
    wait_for_previous_kernel();
    const float* state = states + blockIdx.y * HANDLE_FLOATS;
    if (state[PULLS] == 0.0f) return;
    const int across = 2 * radius + 1, point = blockIdx.x;
    const float x = state[POSITION] + (float)(point % across - radius);
    const float y = state[POSITION + 1] + (float)(point / across - radius);
    const Corners at = corners_of(x, y, side, channels);
    const float* wanted = templates + (size_t)(blockIdx.y * gridDim.x + point) * channels;
    float sum = 0.0f;
    for (int channel = threadIdx.x; channel < used; channel += THREADS) {
        const float difference = sample(features, at, channel) - wanted[channel];
        sum += fabsf(difference);
        const float g = difference > slack ? unit : difference < -slack ? -unit : 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (at.weight[i] != 0.0f) atomicAdd(gradient + at.place[i] + channel, g * at.weight[i]);
    }
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (int i = 0; i < THREADS / 32; ++i) sum += warps[i];
        differences[blockIdx.y * gridDim.x + point] = sum;
    }
}
