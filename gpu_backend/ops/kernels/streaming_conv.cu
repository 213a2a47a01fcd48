// The 3 x 3 convolution of layers with few channels, where loads from shared memory, barriers and the epilogue take longer than the products.
// The formula is that of gpu_backend/ops/modulated_conv.py.
//
// A warpgroup goes down a strip of 64 columns, row of the input by row, and keeps the sums of three rows of outputs. A row of the input is
// multiplied at once by all three rows of taps: one product of 64 pixels has 3 x CHANNELS columns, of which the first third may be the row of
// outputs that begins, the next the one that ends, and so on: the three thirds take turns. Both factors are read from shared memory; the
// pixels of a column of taps begin one pixel after those of the column before. Warpgroups share nothing but the weights, which stay in shared
// memory, and never wait for each other, so that some multiply while others end a row.
//
// Macros, given by streaming_conv_recipe in gpu_backend/cuda/launches/streaming_conv.py:
//     CHANNELS (output channels), DEPTH and STEPS (input channels), ROWS, WARPGROUPS, STAGES: see StreamingConvGeometry in
//         gpu_backend/ops/kernels/streaming_conv_tile.py
//     PADDING: zeros around the input
//     SHARED_NBYTES: StreamingConvGeometry.dynamic_nbytes
//     HALF and USE_WGMMA are 1. ACTIVATION: linear, relu or lrelu. FP8_X, FP8_Y: see parts/e4m3.cuh
//     HAS_RGB: toRGB's products, for a picture of IMG_CHANNELS channels, 8 at most
//
// Weights are packed in the order of the rows of taps 0 2 1 0 2 for each column of taps: three of them in a row are the thirds of a product in
// any of their turns. Output channels are packed so that a lane holds up to eight neighbours, which it stores at once.
//
// Dynamic shared memory, from the first multiple of 1024 bytes on (SHARED_NBYTES, alignment included):
//     weights     STEPS x WEIGHT_SPACE
//     a warpgroup's ring of STAGES rows of x: STEPS x PATCH_NBYTES each
//
// Pipeline of a warpgroup, for a row i of its input:
//     copies      | row i + STAGES - 1 -> stage of row i - 1
//     products    | row i                               |
//     epilogue    | with OVERLAPS, the rest of row i - 3 | first part of row i - 2 | without, its rest
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/wgmma_shared.cuh"
#include "parts/registers.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/tma.cuh"

enum : int {
    THREADS = 128 * WARPGROUPS,
    STRIP_COLUMNS = 64,
    PATCH_LOADED = (STRIP_COLUMNS + 2) * ROW_NBYTES,
    PATCH_NBYTES = (PATCH_LOADED + 1023) / 1024 * 1024,
    STAGE_NBYTES = STEPS * PATCH_NBYTES,
    TAP_NBYTES = CHANNELS * ROW_NBYTES,
    WEIGHT_NBYTES = 15 * TAP_NBYTES,  // of a step: for each column of taps, those of the rows 0, 2, 1, 0, 2
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    NF = CHANNELS / 8,                        // fragments of eight channels
    STORED_FRAGMENTS = NF % 4 == 0 ? 4 : NF % 2 == 0 ? 2 : 1,  // whose channels a lane stores at once
    CHUNKS = STEPS * PRODUCTS,                // of 32 bytes of a pixel's channels
    OVERLAPS = CHANNELS <= 32,                // the epilogue of a row with the products of the next: of 64 channels it takes 9 % longer
};
static_assert(1024 + STEPS * WEIGHT_SPACE + WARPGROUPS * STAGES * STAGE_NBYTES == SHARED_NBYTES, "weights and stages lie in the launch's shared memory");
static_assert(HALF && USE_WGMMA, "the kernel multiplies fp16 or e4m3 by wgmma");
static_assert(CHANNELS % 8 == 0 && 3 * CHANNELS <= 256, "a product has 256 columns");
static_assert(IS_HOMOGENEOUS, "two numbers of fp16 are activated at once");
static_assert(!HAS_RGB || IMG_CHANNELS <= 8, "a product has eight columns");

// A stage is full when its boxes have come, and empty when every warp of the warpgroup has read it. The last barrier is that of the weights.
__shared__ __align__(8) unsigned long long full_barriers[WARPGROUPS * STAGES + 1], empty_barriers[WARPGROUPS * STAGES];
__device__ __forceinline__ unsigned full_barrier(unsigned number) { return shared_address(full_barriers) + number * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned number) { return shared_address(empty_barriers) + number * 8; }

// The output channel at a place of the block, as `lane_order` in gpu_backend/cuda/launches/packed_weights.py has it.
__device__ __forceinline__ int channel_at(int place) {
    const int fragment = place / 8;
    return fragment / STORED_FRAGMENTS * (8 * STORED_FRAGMENTS) + (place % 8 / 2 * STORED_FRAGMENTS + fragment % STORED_FRAGMENTS) * 2 + place % 2;
}

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
    const int tid = threadIdx.x, lane = tid & 31, warp = tid / 32 % 4, warpgroup = warp_uniform(tid / 128);
    const int sample = blockIdx.z;
    const int strips = (side + STRIP_COLUMNS - 1) / STRIP_COLUMNS, number = static_cast<int>(blockIdx.x) * WARPGROUPS + warpgroup;
    const int first_column = number % strips * STRIP_COLUMNS, first_row = number / strips * ROWS;
    const int rows = min(ROWS, side - first_row);
    const unsigned ring = pool + STEPS * WEIGHT_SPACE + warpgroup * (STAGES * STAGE_NBYTES);
    const bool is_loader = tid % 128 == 0;

    auto load = [&](int i, int slot) {
        const unsigned barrier = full_barrier(warpgroup * STAGES + slot), stage = ring + slot * STAGE_NBYTES;
        expect_bytes(barrier, STEPS * PATCH_LOADED);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            tma_load(stage + step * PATCH_NBYTES, &tma_map, step * DEPTH, first_column - PADDING, first_row - PADDING + i, sample, barrier);
        }
    };
    if (tid == 0) {
        for (int i = 0; i < WARPGROUPS * STAGES; ++i) init_barrier(full_barrier(i), 1), init_barrier(empty_barrier(i), 4);
        init_barrier(full_barrier(WARPGROUPS * STAGES), 1);
        fence_barrier_init();
        expect_bytes(full_barrier(WARPGROUPS * STAGES), STEPS * WEIGHT_NBYTES);
        const unsigned char* const from = static_cast<const unsigned char*>(weight);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) bulk_load(pool + step * WEIGHT_SPACE, from + step * WEIGHT_NBYTES, WEIGHT_NBYTES, full_barrier(WARPGROUPS * STAGES));
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
    if (is_loader) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            if (i < rows + 2) load(i, i);
        }
    }

    const int group = lane >> 2, quarter = lane & 3, warp_column = first_column + warp * 16;
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    // The noise of a row of outputs: a lane's is that of its column of sixteen. It is fetched a row ahead.
    auto noise_of = [&](int row) {
        const int column = warp_column + (lane & 15);
        return row >= rows || column >= side ? 0.0f : layer_noise.fetch((first_row + row) * side + column);
    };
    const long long first_pixel = static_cast<long long>(sample) * side * side;
    const unsigned matrix = matrix_descriptor(pool);
    const unsigned bound = to_half2(clamp, clamp);
    float noise_value = noise_of(0);
    float sum[3 * NF * 4];
    unsigned words[2][NF];  // of the row of outputs that ended last: sums times demodulation, plus bias
    int slot = 0, phase = 0;

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
            float* const to = rgb_parts + first_pixel * IMG_CHANNELS + (pixel * IMG_CHANNELS + places);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                if (places + (c & 1) < IMG_CHANNELS && is_inside[c / 2]) to[c / 2 * (8 * IMG_CHANNELS) + (c & 1)] = rgb[c];
            }
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

    // Row i of the input; `turn` is i % 3, the sums that row i of outputs has.
    auto row = [&](int i, int turn) {
        wait_barrier(full_barrier(warpgroup * STAGES + slot), phase);
        __syncwarp();
        const unsigned stage = matrix_descriptor(warp_uniform(ring + slot * STAGE_NBYTES));
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < CHUNKS; ++k) {
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                const unsigned a = stage + (k / PRODUCTS * PATCH_NBYTES + dx * ROW_NBYTES + k % PRODUCTS * 32 >> 4);
                const unsigned b = matrix + (k / PRODUCTS * WEIGHT_SPACE + (5 * dx + turn * 2 % 3) * TAP_NBYTES + k % PRODUCTS * 32 >> 4);
                wgmma_shared<3 * CHANNELS>(sum, a, b, 1);
            }
        }
        wgmma_commit();
        if (is_loader && i > 0 && i - 1 + STAGES < rows + 2) {
            const int before = slot == 0 ? STAGES - 1 : slot - 1;
            wait_barrier(empty_barrier(warpgroup * STAGES + before), slot == 0 ? phase ^ 1 : phase);
            load(i - 1 + STAGES, before);
        }
        __syncwarp();
        if (OVERLAPS && i >= 3) finish_row(i - 3);
        wgmma_wait<0>();
        wgmma_fence_sums(sum);
        if (lane == 0) arrive(empty_barrier(warpgroup * STAGES + slot));
        float* const ended = sum + (turn + 1) % 3 * (NF * 4);
        const int places = opaque(quarter) * 2;
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const float4 pair = *reinterpret_cast<const float4*>(&shared_demod_bias[n * 8 + places]);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float* const own = ended + n * 4 + half * 2;
                words[half][n] = to_half2(own[0] * pair.x + pair.y, own[1] * pair.z + pair.w);
                own[0] = own[1] = 0.0f;
            }
        }
        if (!OVERLAPS && i >= 2) finish_row(i - 2);
        if (++slot == STAGES) slot = 0, phase ^= 1;
    };
#pragma unroll
    for (int i = 0; i < 3 * NF * 4; ++i) sum[i] = 0.0f;
    wait_barrier(full_barrier(WARPGROUPS * STAGES), 0);
#pragma unroll 1
    for (int i = 0; i < rows + 2; i += 3) {
        row(i, 0);
        if (i + 1 < rows + 2) row(i + 1, 1);
        if (i + 2 < rows + 2) row(i + 2, 2);
    }
    if constexpr (OVERLAPS) finish_row(rows - 1);
}
