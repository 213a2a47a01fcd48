// The end of a StyleGAN1 layer, gpu_backend/ops/adain.py: instance normalisation and style of its convolution's output, which
// already has noise, bias and activation.
//     y = (x - mean) factor + shift,    factor = scale / sqrt(variance + epsilon)
// A block has a chunk of pixels of 8 GROUPS channels. While its first pixels are loading, it merges the partial moments of these
// channels, which the blocks of the convolution wrote (parts/moments.cuh). With IMG_CHANNELS it computes its part of toRGB, and
// stores the layer only if y is not null:
//     rgb_parts[channel block][sample][pixel][i] = rgb_gain sum_o rgb_weight[i][o] y[pixel][o]
// With SHOWS a block has all channels, and makes the picture of them as to_rgb.cu does: image and pixels, each if it is not null, and bit 0 of
// flags[sample] if a number is not finite. Nothing reads parts then.
//
// Macros: HALF (1), GROUPS (a power of two up to 8), THREADS, IMG_CHANNELS (0: no toRGB), SHOWS, MIDDLE_TWICE (see parts/bytes.cuh).
// x: (batch, side, side, cout). moments: (batch, parts, cout), see Partials in parts/merged_moments.cuh.
// Grid: chunks, channel blocks, samples.
#include "parts/adain.cuh"
#include "parts/merged_moments.cuh"
#include "parts/bytes.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    LANES = THREADS / GROUPS,  // pixels that a block loads side by side
    CHANNELS = 8 * GROUPS,
    PAIRS = CHANNELS / 2,
    SLICES = THREADS / PAIRS,  // threads that merge the moments of the same two channels
    LOADS = 4,                 // of a thread, in flight
    HAS_RGB = IMG_CHANNELS > 0,
    PART_LOADS = HAS_RGB ? 8 : 4,
    RGB_LENGTH = HAS_RGB ? IMG_CHANNELS : 1,  // of arrays
};
static_assert(!SHOWS || HAS_RGB, "a picture is shown of toRGB's products");

extern "C" __global__ void __launch_bounds__(THREADS, 2) adain(
    const T* __restrict__ x, T* __restrict__ y, const float2* __restrict__ moments, const float* __restrict__ style,
    const float* __restrict__ rgb_weight, float* __restrict__ rgb_parts, const float* __restrict__ rgb_bias, float* __restrict__ image,
    unsigned* __restrict__ pixels, unsigned* __restrict__ flags, int parts, int part_rows, int part_columns,
    int side, int cout, int channels, int style_stride, int chunk, float epsilon, float rgb_gain, float rgb_clamp, float picture_gain) {
    wait_for_previous_kernel();
    __shared__ __align__(16) float2 shared_sums[SLICES][CHANNELS];
    __shared__ __align__(16) float shared_factor[CHANNELS], shared_offset[CHANNELS];
    const int tid = threadIdx.x, group = tid % GROUPS, area = side * side, sample = blockIdx.z;
    const int first_channel = blockIdx.y * CHANNELS, channel = first_channel + group * 8;
    const bool is_there = channel < cout;
    const int first = blockIdx.x * chunk, count = min(chunk, area - first);
    const T* const from = x + ((size_t)sample * area + first) * cout + channel;
    // Two sets: one is loading while the pixels of the other are computed.
    uint4 words[2][LOADS];
    auto load = [&](uint4 (&set)[LOADS], int begin) {
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            set[k] = make_uint4(0u, 0u, 0u, 0u);
            if (is_there && begin + k * LANES < count) {
                set[k] = *reinterpret_cast<const uint4*>(from + (size_t)(begin + k * LANES) * cout);
            }
        }
    };
    load(words[0], tid / GROUPS);

    const int own = first_channel + tid;
    float scale = 0.0f, shift = 0.0f;
    if (tid < CHANNELS && own < channels) {
        const float* const styles = style + (size_t)sample * style_stride + own;
        scale = styles[0], shift = styles[channels];
    }
    const Partials partials = {moments + (size_t)sample * parts * cout + first_channel, parts, cout, cout - first_channel,
                               part_rows, part_columns, side};
    sum_partials<CHANNELS, SLICES, PART_LOADS>(partials, tid, shared_sums, shared_offset);
    __syncthreads();
    if (tid < CHANNELS) {
        const float2 found = mean_and_variance(tid, side, shared_sums, shared_offset);
        const float factor = scale * rsqrtf(found.y + epsilon);
        shared_factor[tid] = own < channels ? factor : 0.0f;
        shared_offset[tid] = own < channels ? fmaf(-found.x, factor, shift) : 0.0f;
    }
    __syncthreads();

    // toRGB has factor and offset in its weights.
    float factor[8], offset[8], rgb_of[RGB_LENGTH][8], rgb_offset[RGB_LENGTH];
    if constexpr (HAS_RGB) {
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) {
            load_table<8>(rgb_weight + c * cout, channel, is_there, rgb_of[c]);
            rgb_offset[c] = 0.0f;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                rgb_offset[c] = fmaf(rgb_of[c][e], rgb_gain * shared_offset[group * 8 + e], rgb_offset[c]);
                rgb_of[c][e] *= rgb_gain * shared_factor[group * 8 + e];
            }
        }
        if constexpr (SHOWS) {  // the bias is added once, by the lanes of the first group
#pragma unroll
            for (int c = 0; c < IMG_CHANNELS; ++c) rgb_offset[c] += group == 0 && rgb_bias != nullptr ? rgb_bias[c] : 0.0f;
        }
    } else {
        load_many<8>(shared_factor + group * 8, factor);
        load_many<8>(shared_offset + group * 8, offset);
    }
    auto compute = [&](const uint4 (&set)[LOADS], int begin) {
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            const int i = begin + k * LANES;
            const bool is_inside = i < count;
            float v[8];
            from_half2(set[k].x, v[0], v[1]), from_half2(set[k].y, v[2], v[3]);
            from_half2(set[k].z, v[4], v[5]), from_half2(set[k].w, v[6], v[7]);
            if constexpr (HAS_RGB) {
                float rgb[RGB_LENGTH];
#pragma unroll
                for (int c = 0; c < IMG_CHANNELS; ++c) {
                    rgb[c] = rgb_offset[c];
#pragma unroll
                    for (int e = 0; e < 8; ++e) rgb[c] = fmaf(rgb_of[c][e], v[e], rgb[c]);
#pragma unroll
                    for (int other = GROUPS / 2; other > 0; other >>= 1) rgb[c] += __shfl_xor_sync(0xffffffffu, rgb[c], other);
                }
                if constexpr (SHOWS) {
                    if (group == 0 && is_inside) {
                        const size_t pixel = (size_t)sample * area + first + i;
                        bool is_finite = true;
#pragma unroll
                        for (int c = 0; c < IMG_CHANNELS; ++c) {
                            rgb[c] = __fmul_rn(picture_gain, bounded(rgb[c], rgb_clamp));
                            is_finite &= isfinite(rgb[c]);
                            if (image != nullptr) image[pixel * IMG_CHANNELS + c] = rgb[c];
                        }
                        if (pixels != nullptr) {
                            pixels[pixel] = pixel_of(rgb);
                            if (!is_finite) atomicOr(flags + sample, 1u);
                        }
                    }
                } else if (group == 0 && is_inside) {
                    const size_t pixel = ((size_t)blockIdx.y * gridDim.z + sample) * area + first + i;
#pragma unroll
                    for (int c = 0; c < IMG_CHANNELS; ++c) rgb_parts[pixel * IMG_CHANNELS + c] = rgb[c];
                }
            } else {
                if (!is_there || !is_inside) continue;
#pragma unroll
                for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e], factor[e], offset[e]);
                store_many<8>(y + ((size_t)sample * area + first + i) * cout + channel, v);
            }
        }
    };
    for (int begin = 0; begin < count; begin += 2 * LOADS * LANES) {
        const int own_begin = begin + tid / GROUPS;
        load(words[1], own_begin + LOADS * LANES);
        compute(words[0], own_begin);
        load(words[0], own_begin + 2 * LOADS * LANES);
        if (begin + LOADS * LANES < count) compute(words[1], own_begin + LOADS * LANES);
    }
    if constexpr (HAS_RGB) {  // a layer that is stored besides
        if (y == nullptr || !is_there) return;
#pragma unroll 1
        for (int i = tid / GROUPS; i < count; i += LANES) {
            float v[8];
            load_many<8>(from + (size_t)i * cout, v);
#pragma unroll
            for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e], shared_factor[group * 8 + e], shared_offset[group * 8 + e]);
            store_many<8>(y + ((size_t)sample * area + first + i) * cout + channel, v);
        }
    }
}
