// The end of a modulated layer, from the sums of gradient_conv:
//
//     v = demod * filter(sum of slices) + noise + bias,   z = clamp(lrelu(v) * gain),   x = z * style of the next layer
//
// With HALF_T and TAPS, t of gradient_up_conv takes the place of demod * (sum of slices).
//
// z is stored for the way back (its sign is that of v), x is the next convolution's input; both fp16, [sample][side][side][channels].
// Macros: TAPS: 0, or the taps of the filter that follows a transposed convolution, whose sums are one slice of side + 1 rows.
// STRIP_ROWS: with a filter, a thread does four channels of so many rows of four pixels (parts/gradient_strips.cuh), otherwise of one pixel. Grid:
// blocks, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define SLOPE 0.2f
#if TAPS
#include "parts/gradient_strips.cuh"
#else
#define STRIP 1
#define STRIP_BOUNDS THREADS
#endif
#if HALF_T
typedef half_bits Sum;
#else
typedef float Sum;
#endif

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) gradient_layer(
    const Sum* __restrict__ sums, const float* __restrict__ filter,
#if !HALF_T
    const float* __restrict__ demod,
#endif
    const float* __restrict__ noise, const float* __restrict__ bias, const float* __restrict__ next_style,
    half_bits* __restrict__ z, half_bits* __restrict__ x, int slices, int side, int channels, int left, int style_count,
#if !HALF_T
    int demod_count, float unit,
#endif
    float gain, float clamp) {
#if TAPS
    const Strip strip = own_strip(side, channels);
    if (!strip.is_there) return;
    const int channel = strip.channel, row = strip.row, column = strip.column;
#else
    const int quads = channels >> 2, index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= side * side * quads) return;
    const int channel = 4 * (index % quads), row = index / quads / side, column = index / quads % side;
#endif
    const int sample = blockIdx.y;
    const size_t first = (size_t)sample * side * side * channels;
    float v[STRIP_ROWS][STRIP][4] = {};
    wait_for_previous_kernel();
#if TAPS
    const int in_side = side + 1;
    float f[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
    const Sum* from = sums + (size_t)sample * in_side * in_side * channels + channel;
    filter_strip(v, f, from, row - left, column - left, in_side, channels);
#else
    const float* from = sums + first + (size_t)(row * side + column) * channels + channel;
    const size_t step = (size_t)gridDim.y * side * side * channels;
#pragma unroll 8
    for (int slice = 0; slice < slices; ++slice) {
        float q[4];
        load_many(from + slice * step, q);
#pragma unroll
        for (int i = 0; i < 4; ++i) v[0][0][i] += q[i];
    }
#endif
    float b[4], style[4] = {};
#if !HALF_T
    float d[4];
    load_many(demod + (size_t)sample * demod_count + channel, d);
#pragma unroll
    for (int i = 0; i < 4; ++i) d[i] *= unit;
#endif
    load_many(bias + channel, b);
    if (x) load_many(next_style + (size_t)sample * style_count + channel, style);
#pragma unroll
    for (int k = 0; k < STRIP_ROWS; ++k)
#pragma unroll
        for (int s = 0; s < STRIP; ++s) {
            const int pixel = (row + k) * side + column + s;
            const float n = noise ? noise[pixel] : 0.0f;
            float out[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#if HALF_T
                const float before = v[k][s][i] + (n + b[i]);
#else
                const float before = fmaf(d[i], v[k][s][i], n + b[i]);
#endif
                out[i] = bounded((before > 0.0f ? before : SLOPE * before) * gain, clamp);
            }
            store_many(z + first + (size_t)pixel * channels + channel, out);
            if (x) {
#pragma unroll
                for (int i = 0; i < 4; ++i) out[i] *= style[i];
                store_many(x + first + (size_t)pixel * channels + channel, out);
            }
        }
}
