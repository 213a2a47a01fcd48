// The adjoint of the filter before a convolution with stride 2, and the way back through the activation before it:
//
//     u[y, x] = (1 where z[y, x] > 0, else 0.2) * sum_kl f[k] f[l] t[y + k - left, x + l - left]
//
// t is [sample][side + 1][side + 1][channels], z and u are [sample][side][side][channels], all fp16; side is even. Macro TAPS.
// A thread does four channels of `rows` rows of two pixels (parts/gradient_strips.cuh). Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define AHEAD 4
#include "parts/gradient_strips.cuh"
#define SLOPE 0.2f

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) discriminator_filter_adjoint(
    const half_bits* __restrict__ t, const float* __restrict__ filter, const half_bits* __restrict__ z, half_bits* __restrict__ u, int side,
    int channels, int rows, int left) {
    const int in_side = side + 1, pitch = side * channels;
    const Strip strip = own_strip(side, channels, rows);
    if (!strip.is_there) return;
    const size_t first = ((size_t)(blockIdx.y * side + strip.row) * side + strip.column) * channels + strip.channel;
    t += (size_t)blockIdx.y * in_side * in_side * channels, z += first, u += first;
    float f[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    wait_for_previous_kernel();
    Stored<half_bits> signs[AHEAD][STRIP];
    filter_strip(
        f, t, strip.channel, strip.row - left, strip.column - left, in_side, channels, strip.rows,
        [&](int slot) {
#pragma unroll
            for (int s = 0; s < STRIP; ++s) signs[slot][s].load(z + s * channels);
            z += pitch;
        },
        [&](int slot, float(&v)[STRIP][CHANNELS]) {
#pragma unroll
            for (int s = 0; s < STRIP; ++s) {
                float q[CHANNELS];
                signs[slot][s].to_floats(q);
#pragma unroll
                for (int i = 0; i < CHANNELS; ++i) v[s][i] *= q[i] > 0.0f ? 1.0f : SLOPE;
                store_many(u + s * channels, v[s]);
            }
            u += pitch;
        });
}
