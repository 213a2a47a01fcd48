// The adjoint of the filter after a transposed convolution: t[a, b] = sum_kl f[k] f[l] u[a + left - k, b + left - l].
// u is [sample][side][side][channels], t [sample][side + 1][side + 1][channels], both fp16. Macro TAPS.
// A thread does four channels of `rows` rows of two pixels (parts/gradient_strips.cuh). Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define AHEAD 4
#include "parts/gradient_strips.cuh"

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) gradient_filter(
    const half_bits* __restrict__ u, const float* __restrict__ filter, half_bits* __restrict__ t, int side,
    int channels, int rows, int left) {
    const int out_side = side + 1;
    const Strip strip = own_strip(out_side, channels, rows);
    if (!strip.is_there) return;
    u += (size_t)blockIdx.y * side * side * channels;
    t += ((size_t)(blockIdx.y * out_side + strip.row) * out_side + strip.column) * channels + strip.channel;
    float f[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[TAPS - 1 - k];
    wait_for_previous_kernel();
    filter_strip(
        f, u, strip.channel, strip.row + left - (TAPS - 1), strip.column + left - (TAPS - 1), side, channels, strip.rows, [](int) {},
        [&](int, const float(&v)[STRIP][CHANNELS]) {
#pragma unroll
            for (int s = 0; s < STRIP; ++s)
                if (strip.column + s < out_side) store_many(t + s * channels, v[s]);
            t += out_side * channels;
        });
}
