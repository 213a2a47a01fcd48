// The end of a convolution of a discriminator, or of an adjoint, whose sums are cut into slices; see parts/discriminator_end.cuh.
//
// Sums are [slice][sample][side][side][channels] as those of gradient_conv, or there are none with 0 slices. Macro TAPS, see there. A thread does eight
// channels of a pixel of any sample. Grid: threads.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/discriminator_end.cuh"

enum : int { THREADS = 128 };

extern "C" __global__ void __launch_bounds__(THREADS) discriminator_end(
    const float* __restrict__ sums, DISCRIMINATOR_END_PARAMETERS,
#if TAPS
    DISCRIMINATOR_JOIN_PARAMETERS,
#endif
    int slices, int groups, int side, int channels) {
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= groups) return;
    const size_t place = (size_t)index * 8, step = (size_t)groups * 8;
    wait_for_previous_kernel();
    float v[1][8] = {};
#pragma unroll 4
    for (int slice = 0; slice < slices; ++slice) {
        float q[8];
        load_many(sums + slice * step + place, q);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[0][i] += q[i];
    }
    const int pixel = index / (channels / 8), channel = index * 8 % channels, line = pixel / side;
    end_channels(v, line / side, line % side, pixel % side, side, channel, channels, DISCRIMINATOR_END_ARGUMENTS);
}
