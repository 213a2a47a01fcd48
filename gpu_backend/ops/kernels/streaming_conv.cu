// The 3 x 3 convolution of layers with few channels, where loads from shared memory, barriers and the epilogue take longer than the products.
// The formula is that of gpu_backend/ops/modulated_conv.py. What warpgroups do is in parts/streaming_rows.cuh.
//
// Macros, given by streaming_conv_recipe in gpu_backend/cuda/launches/streaming_conv.py, besides those of that part:
//     ROWS: of outputs of a strip
//     SHARED_NBYTES: StreamingConvGeometry.dynamic_nbytes, for weights and stages
//     ACTIVATION: linear, relu or lrelu. FP8_X, FP8_Y: see parts/e4m3.cuh
//     HAS_RGB: toRGB's products, for a picture of IMG_CHANNELS channels, 8 at most
//     HAS_BLEND: see parts/blend.cuh
//     HAS_PICTURE: with HAS_RGB, the whole picture in place of the products, as parts/picture_rows.cuh says
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/registers.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/blend.cuh"
#include "parts/streaming_rows.cuh"
#if HAS_PICTURE
#include "parts/picture_rows.cuh"
#endif

enum : int {
    OVERLAPS = CHANNELS <= 32,  // the epilogue of a row with the products of the next: of 64 channels it takes 9 % longer
};
static_assert(1024 + STREAMED_NBYTES == SHARED_NBYTES, "weights and stages lie in the launch's shared memory");
static_assert(IS_HOMOGENEOUS, "two numbers of fp16 are activated at once");
static_assert(!HAS_RGB || IMG_CHANNELS <= 8, "a product has eight columns");

__shared__ __align__(8) unsigned long long weights_full;

// Stores the words of STORED_FRAGMENTS fragments, neighbouring channels of a pixel.
template <typename To>
__device__ __forceinline__ void store_words(To* to, const unsigned* words) {
    if constexpr (sizeof(To) == 1) {
        if constexpr (STORED_FRAGMENTS == 4) {
            *reinterpret_cast<uint2*>(to) = make_uint2(to_e4m3x4(words[0], words[1]), to_e4m3x4(words[2], words[3]));
        } else if constexpr (STORED_FRAGMENTS == 2) {
            *reinterpret_cast<unsigned*>(to) = to_e4m3x4(words[0], words[1]);
        } else {
            *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(to_e4m3x4(words[0], words[0]));
        }
    } else if constexpr (STORED_FRAGMENTS == 4) {
        *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    } else if constexpr (STORED_FRAGMENTS == 2) {
        *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    } else {
        *reinterpret_cast<unsigned*>(to) = words[0];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) streaming_conv(
    const void* __restrict__ weight, Y* __restrict__ y, T* __restrict__ y_raw, const float* __restrict__ demod, const float* __restrict__ next_style,
    const float* __restrict__ bias, const float* __restrict__ noise, const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source,
    float noise_strength, int noise_layer,
#if HAS_RGB
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts,
#endif
#if HAS_PICTURE
    PICTURE_ROWS_PARAMETERS,
#endif
#if HAS_BLEND
    BLEND_PARAMETERS,
#endif
    int side, int cout, int demod_stride, int style_stride, float gain, float clamp, const __grid_constant__ TensorMap tma_map) {
#if !HAS_RGB  // named in branches that are not compiled
    const float *const rgb_weight = nullptr, *const rgb_style = nullptr;
    float* const rgb_parts = nullptr;
#endif
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float2 shared_demod_bias[CHANNELS];
    __shared__ __align__(16) half_bits shared_style[CHANNELS];
    __shared__ __align__(16) half_bits shared_rgb[8][CHANNELS + 8];  // rows of the picture's channels, the rest zero
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid / 32 % 4;
    const Strip strip(&tma_map, pool, side, ROWS);
    const int sample = strip.sample, first_row = strip.first_row, rows = strip.rows;
    if (tid == 0) {
        init_row_barriers();
        init_barrier(shared_address(&weights_full), 1);
        fence_barrier_init();
        expect_bytes(shared_address(&weights_full), STEPS * WEIGHT_NBYTES);
        const unsigned char* const from = static_cast<const unsigned char*>(weight);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) bulk_load(pool + step * WEIGHT_SPACE, from + step * WEIGHT_NBYTES, WEIGHT_NBYTES, shared_address(&weights_full));
    }
    wait_for_previous_kernel();
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = channel_at(i);
        const bool is_there = channel < cout;
        shared_demod_bias[i] = make_float2(!is_there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * (gain_before(gain) * FP8_X_UNIT),
                                           is_there && bias ? bias[channel] * gain_before(gain) : 0.0f);
        shared_style[i] = to_half(!is_there ? 0.0f : (next_style ? next_style[sample * style_stride + channel] : 1.0f) * FP8_Y_UNIT);
        if constexpr (HAS_RGB) {
            const float style = is_there ? rgb_style[sample * style_stride + channel] : 0.0f;
#pragma unroll
            for (int c = 0; c < 8; ++c) shared_rgb[c][i] = to_half(c < IMG_CHANNELS && is_there ? rgb_weight[c * cout + channel] * style : 0.0f);
        }
    }
    __syncthreads();
    if (rows <= 0) return;
    strip.load_first_rows();

    const int group = lane >> 2, quarter = lane & 3, warp_column = strip.first_column + warp * 16;
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    // The noise of a row of outputs: a lane's is that of its column of sixteen. It is fetched a row ahead.
    auto noise_of = [&](int row) {
        const int column = warp_column + (lane & 15);
        return row >= rows || column >= side ? 0.0f : layer_noise.fetch((first_row + row) * side + column);
    };
    const long long first_pixel = static_cast<long long>(sample) * side * side;
    const unsigned bound = to_half2(clamp, clamp);
    float noise_value = noise_of(0);
#if HAS_PICTURE
    PictureRows picture(picture_bias, picture_clamp, picture_previous, picture_taps, image, host_slot, flag_at, side, strip.first_column, strip.warpgroup, first_row);
#endif
    unsigned words[2][NF];  // of the row of outputs that ended last: sums times demodulation, plus bias

#if HAS_BLEND
    // What the warp's part of a row of outputs will be blended with.
    auto prefetch_second = [&](int row) {
        if (lane == 0 && row < rows && warp_column < side) prefetch(second + ((first_row + row) * side + warp_column) * cout, min(16, side - warp_column) * cout);
    };
    prefetch_second(0);
#endif

    // The rest of the epilogue of a row of outputs.
    auto finish_row = [&](int row) {
        const float scaled = opaque(noise_value) * layer_noise.strength;
        noise_value = noise_of(row + 1);
        const int places = opaque(quarter) * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float own = __shfl_sync(0xffffffffu, scaled, group + 8 * half);
            const unsigned shift = to_half2(own, own);
#pragma unroll
            for (int n = 0; n < NF; ++n) words[half][n] = activated2(add2(words[half][n], shift), bound);
        }
        const int pixel = (first_row + row) * side + warp_column + group;
        const bool is_inside[2] = {warp_column + group < side, warp_column + group + 8 < side};
#if HAS_BLEND  // what a lambda names changes its machine code, even in branches that are not compiled
        float shares[2];
        unsigned others[2][NF];  // loaded for both pixels before either is blended
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            shares[half] = is_inside[half] ? mask_at(mask, mask_side, mask_step, first_row + row, warp_column + group + half * 8) : 0.0f;
#pragma unroll
            for (int n = 0; n < NF; n += STORED_FRAGMENTS) {
                const int channel = n * 8 + places * STORED_FRAGMENTS;
                unsigned own[STORED_FRAGMENTS] = {};
                if (shares[half] != 0.0f && channel < cout) load_neighbours(second + ((pixel + half * 8) * cout + channel), own);
#pragma unroll
                for (int j = 0; j < STORED_FRAGMENTS; ++j) others[half][n + j] = own[j];
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (shares[half] == 0.0f) continue;
#pragma unroll
            for (int n = 0; n < NF; ++n) words[half][n] = blended_word(words[half][n], others[half][n], shares[half]);
        }
        prefetch_second(row + 1);
#endif
        if constexpr (HAS_RGB) {  // words are just what a lane must hold of the left factor of a product
            float rgb[4] = {};
#pragma unroll
            for (int n = 0; n < NF; n += 2) {
                const half_bits* const from = &shared_rgb[group][n * 8 + places];
                const int next = n + 1 < NF ? n + 1 : n;  // a last fragment by itself meets zeros
                const unsigned left[4] = {words[0][n], words[1][n], words[0][next], words[1][next]};
                const unsigned second = n + 1 < NF ? *reinterpret_cast<const unsigned*>(from + 8) : 0u;
                mma_m16n8k16(rgb, left, *reinterpret_cast<const unsigned*>(from), second);
            }
#if HAS_PICTURE
            picture.take(rgb, first_row + row);
#else
            float* const to = rgb_parts + first_pixel * IMG_CHANNELS + (pixel * IMG_CHANNELS + places);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                if (places + (c & 1) < IMG_CHANNELS && is_inside[c / 2]) to[c / 2 * (8 * IMG_CHANNELS) + (c & 1)] = rgb[c];
            }
#endif
        }
#pragma unroll
        for (int kind = 0; kind < 2; ++kind) {
            if (kind == 0 ? y == nullptr : y_raw == nullptr) continue;
#pragma unroll
            for (int n = 0; n < NF; n += STORED_FRAGMENTS) {
                const int channel = n * 8 + places * STORED_FRAGMENTS;
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    unsigned own[STORED_FRAGMENTS];
#pragma unroll
                    for (int j = 0; j < STORED_FRAGMENTS; ++j) {
                        own[j] = words[half][n + j];
                        if (kind == 0) own[j] = styled(own[j], *reinterpret_cast<const unsigned*>(&shared_style[(n + j) * 8 + places]));
                    }
                    if (channel >= cout || !is_inside[half]) continue;
                    const long long to = first_pixel * cout + ((pixel + half * 8) * cout + channel);
                    if (kind == 0) store_words(y + to, own);
                    else store_words(y_raw + to, own);
                }
            }
        }
    };

    auto take = [&](int, const float* ended) {
        const int places = opaque(quarter) * 2;
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const float4 pair = *reinterpret_cast<const float4*>(&shared_demod_bias[n * 8 + places]);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float* const own = ended + n * 4 + half * 2;
                words[half][n] = to_half2(own[0] * pair.x + pair.y, own[1] * pair.z + pair.w);
            }
        }
    };
    wait_barrier(shared_address(&weights_full), 0);
    stream_rows<OVERLAPS>(strip, pool, [](int) {}, take, finish_row);
#if HAS_PICTURE
    picture.end();
#endif
}
