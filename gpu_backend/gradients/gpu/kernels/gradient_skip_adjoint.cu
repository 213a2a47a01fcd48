// The adjoint of doubling a block's skip: from the gradient of the block's output at `side` to that of the 1 x 1 products at half of it.
//
//     to[y, x] = sum_ij f[i] f[j] from[2 y + left - i, 2 x + left - j]
//
// Both are [sample][row][column][channels] fp16; side is a multiple of four. `filter` as in gradient_picture. Macro TAPS: of the filter. A thread
// does four channels of `rows` rows of two pixels (parts/gradient_strips.cuh). Grid: threads, samples.
#define HALF 1
#include "parts/previous_kernel.cuh"
#include "parts/types.cuh"

#define AHEAD 1
#define STEP 2
#include "parts/gradient_strips.cuh"

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) gradient_skip_adjoint(
    const half_bits* __restrict__ from, const float* __restrict__ filter, half_bits* __restrict__ to, int side, int channels, int rows, int left) {
    const int half_side = side / 2;
    const Strip strip = own_strip(half_side, channels, rows);
    if (!strip.is_there) return;
    from += (size_t)blockIdx.y * side * side * channels;
    to += ((size_t)(blockIdx.y * half_side + strip.row) * half_side + strip.column) * channels + strip.channel;
    float f[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[TAPS - 1 - k];
    wait_for_previous_kernel();
    filter_strip(
        f, from, strip.channel, 2 * strip.row + left - (TAPS - 1), 2 * strip.column + left - (TAPS - 1), side, channels, strip.rows, [](int) {},
        [&](int, const float(&v)[STRIP][CHANNELS]) {
#pragma unroll
            for (int s = 0; s < STRIP; ++s) store_many(to + s * channels, v[s]);
            to += half_side * channels;
        });
}
