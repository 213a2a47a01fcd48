// The end of a convolution of a discriminator, or of an adjoint, whose sums are cut into slices; see parts/discriminator_end.cuh.
//
// Sums are [slice][sample][pixel][channel] as those of gradient_conv. A thread does eight channels of a pixel of any sample.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_end.cuh"

enum : int { THREADS = 128 };

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_end(
    const float* __restrict__ sums, DISCRIMINATOR_END_PARAMETERS, int slices, int groups, int channels) {
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= groups) return;
    const size_t place = (size_t)index * 8, step = (size_t)groups * 8;
    wait_for_previous_kernel();
    float v[8];
    load_many(sums + place, v);
#pragma unroll 4
    for (int slice = 1; slice < slices; ++slice) {
        float q[8];
        load_many(sums + slice * step + place, q);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] += q[i];
    }
    end_channels(v, index * 8 % channels, place, DISCRIMINATOR_END_ARGUMENTS);
}
