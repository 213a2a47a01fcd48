// A 3 x 3 convolution with stride 1 and zero padding 1, or its adjoint, of a wide picture with few channels, with its end, on Hopper: the products of
// parts/streaming_rows.cuh, whose sums go on from registers.
//
// x, W and what is written are those of gradient_conv, [sample][side][side][channels] fp16. `is_adjoint`: the weights are turned by half a turn.
//
// Macros, besides those of parts/streaming_rows.cuh:
//     LAYER_END 1: the end of a modulated layer, the formula of gradient_layer; x and style may be null
//     WAY_BACK 1: the way back through the layer before, the formula of gradient_activation: `style` is that of the adjoint's own layer, the others are
//         those of the layer before, whose z is read; to = u is written. Each block has a row of its own in style_sums and demod_sums
//     TAPS: of the filter before a discriminator's skip. The sums, times unit, and the rest of the gradient of a block's input
//         (parts/discriminator_join.cuh) are `out`, if it is given, and through the activation whose signs are given u
//     none of them: the sums, times unit, are `out`
//
// Grid: strips of `strip_rows` rows, one for each warpgroup of a block; one; samples.
#define HALF 1
#define USE_WGMMA 1
#define ACTIVATION 0
#define STEPS 1
#define PADDING 1
#include "parts/streaming_rows.cuh"
#include "parts/gradient_constants.cuh"
#include "parts/previous_kernel.cuh"
#if TAPS
#include "parts/discriminator_join.cuh"
#include "parts/discriminator_signs.cuh"
#endif

enum : int {
    GROUPS = CHANNELS / 8 / STORED_FRAGMENTS,  // of eight neighbouring channels that a lane has of a pixel
    CHUNKS_OF_ROW = ROW_NBYTES / 16,
    WEIGHT_CHUNKS = 15 * CHANNELS * CHUNKS_OF_ROW,
};
static_assert(STORED_FRAGMENTS == 4, "a lane has eight neighbouring channels");

#define LAYER_SLOPE 0.2f

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient_streaming_conv(
    const __grid_constant__ TensorMap x_map, const half_bits* __restrict__ weight,
#if LAYER_END
    const float* __restrict__ style, const float* __restrict__ demod, const float* __restrict__ noise, const float* __restrict__ bias,
    half_bits* __restrict__ z, half_bits* __restrict__ to, int style_count, int demod_count, float unit, float gain, float clamp,
#else
#if WAY_BACK
    const float* __restrict__ style, const float* __restrict__ demod, const float* __restrict__ noise, const float* __restrict__ bias,
    const half_bits* __restrict__ z, half_bits* __restrict__ to, float* __restrict__ style_sums, float* __restrict__ demod_sums, int style_count,
    int demod_count, int sum_count, float unit, float gain, float clamp,
#else
    half_bits* __restrict__ out, float unit,
#endif
#endif
#if TAPS
    const signs_byte* __restrict__ signs, half_bits* __restrict__ u, DISCRIMINATOR_JOIN_PARAMETERS,
#endif
    int side, int cin, int cout, int strip_rows, int is_adjoint) {
    extern __shared__ unsigned char unaligned[];
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32 % 4, group = lane >> 2, quarter = lane & 3;
    const Strip strip(&x_map, pool, side, strip_rows);
    if (threadIdx.x == 0) {
        init_row_barriers();
        fence_barrier_init();
    }
    // Weights, which no kernel writes, are under way before the kernel before has ended.
#pragma unroll 4
    for (int i = threadIdx.x; i < WEIGHT_CHUNKS; i += THREADS) {
        const int chunk = i % CHUNKS_OF_ROW, place = i / CHUNKS_OF_ROW % CHANNELS, row = i / CHUNKS_OF_ROW / CHANNELS;
        const int tap = row % 5 * 2 % 3 * 3 + row / 5, channel = channel_at(place);
        const bool is_there = channel < cout && chunk * 8 < cin;
        const half_bits* const from = weight + ((is_adjoint ? 8 - tap : tap) * cout + channel) * cin + chunk * 8;
        copy_async(pool + row * TAP_NBYTES + place * ROW_NBYTES + swizzled<ROW_NBYTES>(chunk, place) * 16, is_there ? from : weight, is_there);
    }
    commit_copies();
    wait_for_previous_kernel();
#if LAYER_END || WAY_BACK
    __shared__ __align__(16) float scales[CHANNELS], biases[CHANNELS], styles[CHANNELS];
    for (int i = threadIdx.x; i < CHANNELS; i += THREADS) {
        const bool is_there = i < cout;
        styles[i] = is_there && style ? style[(size_t)strip.sample * style_count + i] : 0.0f;
        // From the sum to z, or to u, where z > 0.
        scales[i] = is_there ? demod[(size_t)strip.sample * demod_count + i] * (unit * gain) : 0.0f;
        biases[i] = is_there ? bias[i] : 0.0f;
#if WAY_BACK
        scales[i] *= styles[i];
#else
        biases[i] *= gain;
#endif
    }
#endif
    wait_copies<0>();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma sees what threads copied
    __syncthreads();
#if !WAY_BACK
    if (strip.rows <= 0) return;
#endif
    strip.load_first_rows();

    const int first_column = strip.first_column + warp * 16 + group;
    // The eight channels of a group that this lane has of one of its two pixels.
    auto channels_of = [](const float* ended, int first, int half, float (&v)[8]) {
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = ended[(first * STORED_FRAGMENTS + i / 2) * 4 + half * 2 + i % 2];
    };
    auto is_there = [&](int first, int half) { return first * 32 + quarter * 8 < cout && first_column + 8 * half < side; };
    const size_t first_place = (size_t)strip.sample * side * side * cout;
    const int own_place = (strip.first_row * side + first_column) * cout + quarter * 8;
    auto place_of = [&](int row, int first, int half) { return own_place + (row * side + 8 * half) * cout + first * 32; };
#if LAYER_END || WAY_BACK
    z += first_place;
    if (to) to += first_place;
    auto noise_of = [&](int row, int half) {
        const int column = first_column + 8 * half;
        return noise && row < strip.rows && column < side ? noise[(strip.first_row + row) * side + column] : 0.0f;
    };
#endif
#if LAYER_END
    // The noise of this lane's pixels of a row is fetched a row ahead.
    float next_noises[2] = {noise_of(0, 0), noise_of(0, 1)};
    auto begin = [](int) {};
    auto end = [&](int row, const float* ended) {
        if (row < 0) return;
        const int own_channel = opaque(quarter) * 8;
        const float noises[2] = {next_noises[0] * gain, next_noises[1] * gain};
        next_noises[0] = noise_of(row + 1, 0), next_noises[1] = noise_of(row + 1, 1);
#pragma unroll
        for (int first = 0; first < GROUPS; ++first) {
            float d[8], b[8], s[8];
            load_many(scales + first * 32 + own_channel, d), load_many(biases + first * 32 + own_channel, b);
            load_many(styles + first * 32 + own_channel, s);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (!is_there(first, half)) continue;
                const int place = place_of(row, first, half);
                float v[8];
                channels_of(ended, first, half, v);
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float before = fmaf(d[i], v[i], noises[half] + b[i]);  // times gain, which leaky ReLU keeps
                    v[i] = bounded(fmaxf(before, LAYER_SLOPE * before), clamp);
                }
                store_many(z + place, v);
                if (!to) continue;
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] *= s[i];
                store_many(to + place, v);
            }
        }
    };
#elif WAY_BACK
    float style_sum[GROUPS][8] = {}, demod_sum[GROUPS][8] = {}, noises[2];
    uint4 results[GROUPS][2];
    // Opaque: of a choice of two inverses the compiler makes the inverse of a choice, a division for each number.
    const float up_inverse = opaque(1.0f / gain), down_inverse = opaque(1.0f / (LAYER_SLOPE * gain));
    auto begin = [&](int row) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            noises[half] = noise_of(row, half);
#pragma unroll
            for (int first = 0; first < GROUPS; ++first)
                results[first][half] =
                    is_there(first, half) ? *reinterpret_cast<const uint4*>(z + place_of(row, first, half)) : make_uint4(0, 0, 0, 0);
        }
    };
    auto end = [&](int row, const float* ended) {
        if (row < 0) return;
        const int own_channel = opaque(quarter) * 8;
#pragma unroll
        for (int first = 0; first < GROUPS; ++first) {
            float up[8], b[8];
            load_many(scales + first * 32 + own_channel, up), load_many(biases + first * 32 + own_channel, b);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (!is_there(first, half)) continue;
                float v[8], result[8];
                channels_of(ended, first, half, v);
                from_half8(results[first][half], result);
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    style_sum[first][i] = fmaf(result[i], v[i], style_sum[first][i]);
                    const bool is_up = result[i] > 0.0f;
                    v[i] *= is_up ? up[i] : LAYER_SLOPE * up[i];
                    if (!(fabsf(result[i]) < clamp)) v[i] = 0.0f;
                    // Stored results are finite, so that the second factor is, beyond the clamp too.
                    demod_sum[first][i] =
                        fmaf(v[i], fmaf(result[i], is_up ? up_inverse : down_inverse, -b[i] - noises[half]), demod_sum[first][i]);
                }
                store_many(to + place_of(row, first, half), v);
            }
        }
    };
#elif TAPS
    static_assert(TAPS == 4, "two taps of a column meet samples");
    const int half_side = side / 2;
    from += first_place / 4, signs += first_place / 8, u += first_place;
    if (out) out += first_place;
    if (map) map += first_place, wanted += first_place, numbers += 2 * (size_t)strip.sample * side * side;
    const float factor = map ? level * scale[strip.sample] : 0.0f;
    float f[TAPS], column_shares[2][2];
    int columns[2][2];  // of the samples that a pixel's taps meet
#pragma unroll
    for (int i = 0; i < TAPS; ++i) f[i] = filter[i];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            columns[half][j] = met_sample(filter, first_column + 8 * half - left, j, half_side, column_shares[half][j]) * cout + quarter * 8;

    // What some of the row's channels need, each before those that are ended.
    struct Inputs {
        uint4 from[2][2], map, wanted;
        float2 numbers;
        signs_byte signs;
    } inputs[LOOKAHEAD];
    int rows[2];
    auto load = [&](int row, int item) {
        const int group = item / 2, half = item % 2, place = place_of(row, group, half);
        if (!is_there(group, half)) return;
        Inputs& own = inputs[item % LOOKAHEAD];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) own.from[i][j] = *reinterpret_cast<const uint4*>(from + (rows[i] + columns[half][j] + group * 32));
        own.signs = signs[place >> 3];
        if (!map) return;
        own.map = *reinterpret_cast<const uint4*>(map + place), own.wanted = *reinterpret_cast<const uint4*>(wanted + place);
        own.numbers = *reinterpret_cast<const float2*>(numbers + 2 * ((strip.first_row + row) * side + first_column + 8 * half));
    };
    float row_shares[2];
    auto begin = [&](int row) {
        const int first_tap = strip.first_row + row - left, is_odd = first_tap & 1;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int place = (first_tap + is_odd) / 2 + i, safe_place = min(max(place, 0), half_side - 1);
            rows[i] = safe_place * half_side * cout;
            row_shares[i] = place == safe_place ? is_odd ? f[2 * i + 1] : f[2 * i] : 0.0f;
        }
#pragma unroll
        for (int item = 0; item < LOOKAHEAD; ++item) load(row, item);
    };
    auto end = [&](int row, const float* ended) {
        if (row < 0) return;
#pragma unroll
        for (int item = 0; item < 2 * GROUPS; ++item) {
            const int group = item / 2, half = item % 2, place = place_of(row, group, half);
            const Inputs& own = inputs[item % LOOKAHEAD];
            if (is_there(group, half)) {
                float v[8], q[8], w[8];
                channels_of(ended, group, half, v);
#pragma unroll
                for (int i = 0; i < 8; ++i) v[i] *= unit;
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const float share = row_shares[i] * column_shares[half][j];
                        from_half8(own.from[i][j], q);
#pragma unroll
                        for (int k = 0; k < 8; ++k) v[k] = fmaf(share, q[k], v[k]);
                    }
                if (map) {
                    const float along = factor * own.numbers.x, across = factor * own.numbers.y;
                    from_half8(own.map, q), from_half8(own.wanted, w);
#pragma unroll
                    for (int i = 0; i < 8; ++i) v[i] = fmaf(along, q[i], fmaf(across, w[i], v[i]));
                }
                if (out) store_many(out + place, v);
                through_activation(v, own.signs);
                store_many(u + place, v);
            }
            if (item + LOOKAHEAD < 2 * GROUPS) load(row, item + LOOKAHEAD);
        }
    };
#else
    out += first_place;
    auto begin = [](int) {};
    auto end = [&](int row, const float* ended) {
        if (row < 0) return;
#pragma unroll
        for (int item = 0; item < 2 * GROUPS; ++item) {
            const int group = item / 2, half = item % 2;
            if (!is_there(group, half)) continue;
            float v[8];
            channels_of(ended, group, half, v);
#pragma unroll
            for (int i = 0; i < 8; ++i) v[i] *= unit;
            store_many(out + place_of(row, group, half), v);
        }
    };
#endif
#if WAY_BACK
    // The sums of a warp's lanes, then of the block's warps.
    __shared__ __align__(16) float totals[4 * WARPGROUPS][2][CHANNELS];
    if (strip.rows > 0) stream_rows<false>(strip, pool, begin, end, [](int) {});
#pragma unroll
    for (int first = 0; first < GROUPS; ++first) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float sums[2] = {style_sum[first][i] * unit, demod_sum[first][i]};
#pragma unroll
            for (int kind = 0; kind < 2; ++kind) {
#pragma unroll
                for (int other = 4; other < 32; other *= 2) sums[kind] += __shfl_xor_sync(0xffffffffu, sums[kind], other);
                if (group == 0) totals[threadIdx.x / 32][kind][first * 32 + quarter * 8 + i] = sums[kind];
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * CHANNELS; i += THREADS) {
        const int kind = i / CHANNELS, channel = i % CHANNELS;
        if (channel >= cout) continue;
        float total = 0.0f;
#pragma unroll
        for (int warp = 0; warp < 4 * WARPGROUPS; ++warp) total += totals[warp][kind][channel];
        const size_t place = (size_t)strip.sample * sum_count + (size_t)blockIdx.x * cout + channel;
        const float d = demod[(size_t)strip.sample * demod_count + channel];
        if (kind) demod_sums[place] = total / (d * d);  // products were those of u
        else style_sums[place] = total;
    }
#else
    stream_rows<false>(strip, pool, begin, end, [](int) {});
#endif
}
