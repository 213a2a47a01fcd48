// The end of a modulated layer, from the sums of gradient_conv:
//
//     v = demod * filter(sum of slices) + noise + bias,   z = clamp(lrelu(v) * gain),   x = z * style of the next layer
//
// With HALF_T and TAPS, t of gradient_up_conv takes the place of demod * (sum of slices).
//
// z is stored for the way back (its sign is that of v), x is the next convolution's input; both fp16, [sample][side][side][channels].
// Macros: TAPS: 0, or the taps of the filter that follows a transposed convolution, whose sums are one slice of side + 1 rows.
// With a filter, a thread does four channels of `rows` rows of two pixels (parts/gradient_strips.cuh), otherwise of four pixels, or of one
// where there are several slices. Grid: threads, samples.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define SLOPE 0.2f
#if HALF_T
#define AHEAD 4
typedef half_bits Sum;
#else
#define AHEAD 2
typedef float Sum;
#endif
#if TAPS
#include "parts/gradient_strips.cuh"
#else
#define CHANNELS 4
#define PIXELS 4
#define THREADS 256
#define STRIP_BOUNDS THREADS
#endif

extern "C" __global__ void __launch_bounds__(STRIP_BOUNDS) gradient_layer(
    const Sum* __restrict__ sums, const float* __restrict__ filter,
#if !HALF_T
    const float* __restrict__ demod,
#endif
    const float* __restrict__ noise, const float* __restrict__ bias, const float* __restrict__ next_style,
    half_bits* __restrict__ z, half_bits* __restrict__ x, int slices, int side, int channels, int rows, int left, int style_count,
#if !HALF_T
    int demod_count, float unit,
#endif
    float gain, float clamp) {
    const int sample = blockIdx.y;
#if TAPS
    const Strip strip = own_strip(side, channels, rows);
    if (!strip.is_there) return;
    const int channel = strip.channel, pixel = strip.row * side + strip.column;
    float f[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) f[k] = filter[k];
#else
    // Of one slice, a thread does pixels this far from each other, whose loads are under way together.
    const int quads = channels / CHANNELS, index = blockIdx.x * THREADS + threadIdx.x, apart = side * side / (slices == 1 ? PIXELS : 1);
    if (index >= apart * quads) return;
    const int channel = index % quads * CHANNELS, pixel = index / quads;
#endif
    const size_t first = ((size_t)sample * side * side + pixel) * channels + channel;
    float b[CHANNELS], style[CHANNELS] = {};
    load_many(bias + channel, b);
    wait_for_previous_kernel();
#if !HALF_T
    float d[CHANNELS];
    load_many(demod + (size_t)sample * demod_count + channel, d);
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) d[i] *= unit;
#endif
    if (x) load_many(next_style + (size_t)sample * style_count + channel, style), x += first;
    if (noise) noise += pixel;
    z += first;
    // Stores a pixel that lies so many numbers behind z and x.
    const auto finish = [&](const float(&v)[CHANNELS], float n, int place) {
        float out[CHANNELS];
#pragma unroll
        for (int i = 0; i < CHANNELS; ++i) {
#if HALF_T
            const float before = v[i] + (n + b[i]);
#else
            const float before = fmaf(d[i], v[i], n + b[i]);
#endif
            out[i] = bounded((before > 0.0f ? before : SLOPE * before) * gain, clamp);
        }
        store_many(z + place, out);
        if (x) {
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i) out[i] *= style[i];
            store_many(x + place, out);
        }
    };
#if TAPS
    const int in_side = side + 1;
    float noises[AHEAD][STRIP] = {};
    filter_strip(
        f, sums + (size_t)sample * in_side * in_side * channels, channel, strip.row - left, strip.column - left, in_side, channels, strip.rows,
        [&](int slot) {
            if (noise) load_many(noise, noises[slot]), noise += side;
        },
        [&](int slot, const float(&v)[STRIP][CHANNELS]) {
#pragma unroll
            for (int s = 0; s < STRIP; ++s) finish(v[s], noises[slot][s], s * channels);
            z += side * channels;
            if (x) x += side * channels;
        });
#else
    const float* from = sums + first;
    if (slices == 1) {
        float v[PIXELS][CHANNELS], n[PIXELS] = {};
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) {
            load_many(from + (size_t)i * apart * channels, v[i]);
            if (noise) n[i] = noise[i * apart];
        }
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) finish(v[i], n[i], i * apart * channels);
    } else {
        const size_t step = (size_t)gridDim.y * side * side * channels;
        float v[CHANNELS] = {};
#pragma unroll 8
        for (int slice = 0; slice < slices; ++slice) {
            float q[CHANNELS];
            load_many(from + slice * step, q);
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i) v[i] += q[i];
        }
        finish(v, noise ? *noise : 0.0f, 0);
    }
#endif
}
