// A 3 x 3 or 1 x 1 convolution of scaled activations as an implicit matrix product on tensor cores, with everything that
// follows it: demodulation, noise, bias, activation, gain, clamp, resnet's skip, the block's share of toRGB, and the style
// of the convolution that reads the result. The formula is that of gpu_backend/ops/modulated_conv.py.
//
// A block computes ROWS x COLUMNS pixels for CHANNELS output channels. Positions are the rows of the product, sixteen a
// fragment; output channels are its columns; it is summed over the input channels, DEPTH a step, and the taps. The pixels a
// step needs, halo included, lie in shared memory once and serve all taps.
//
// Macros: ROWS COLUMNS CHANNELS DEPTH STAGES WARPS_M WARPS_N SPLIT WGMMA (gpu_backend/ops/conv_tile.py), KERNEL 1|3,
// ACTIVATION, HAS_RGB, IMG_CHANNELS, HAS_SKIP, TAPS. HALF is 1.
// part: types
// part: tensor_core
// part: activation
// part: philox
// part: epilogue

#define THREADS (32 * WARPS_M * WARPS_N)
#define CHUNKS (DEPTH / 8)
#define PAD (KERNEL / 2)
#define PITCH (COLUMNS + KERNEL - 1)
#define PATCH_PIXELS ((ROWS + KERNEL - 1) * PITCH)
#define PATCH_NBYTES ((PATCH_PIXELS * DEPTH * 2 + 1023) / 1024 * 1024)
#define WEIGHT_NBYTES (KERNEL * KERNEL * CHANNELS * DEPTH * 2)
#define WEIGHT_SPACE ((WEIGHT_NBYTES + 1023) / 1024 * 1024)
#define STAGE_NBYTES (PATCH_NBYTES + WEIGHT_SPACE)
#define AHEAD (STAGES > 1 ? STAGES - 1 : 1)  // steps on their way while one is summed; one stage: none
#define POSITIONS (ROWS * COLUMNS)
#define MF (POSITIONS / 16 / WARPS_M)     // fragments of sixteen positions a warp
#define NF (CHANNELS / 8 / WARPS_N)       // groups of eight channels a warp
#define WARP_CHANNELS (CHANNELS / WARPS_N)
#define STORE_PITCH (CHANNELS * 2 + 16)   // bytes of a pixel in the store buffer
// A fragment that is a run of sixteen pixels of one row serves the taps of three rows: it is loaded once for all.
#define REUSES_ROWS (COLUMNS >= 16 && KERNEL == 3)

__device__ __forceinline__ int row_of(int position) {
    if (COLUMNS >= 16) return position / 16 % ROWS;
    return position / COLUMNS;
}

__device__ __forceinline__ int column_of(int position) {
    if (COLUMNS >= 16) return position / 16 / ROWS * 16 + position % 16;
    return position % COLUMNS;
}

// A gain may be applied before an activation that is homogeneous: once a channel instead of once a number.
#if ACTIVATION <= 2
#define GAIN_AFTER 1.0f
#define GAIN_BEFORE gain
#else
#define GAIN_AFTER gain
#define GAIN_BEFORE 1.0f
#endif

struct Place {
    int sample, y0, x0, side, cin;
};

__device__ __forceinline__ void load_stage(
    unsigned stage, int step, const T* __restrict__ x, const unsigned char* __restrict__ weight, Place at) {
    const int tid = threadIdx.x;
    const unsigned char* source = weight + static_cast<long long>(step) * WEIGHT_NBYTES;
#pragma unroll
    for (int i = 0; i < (WEIGHT_NBYTES / 16 + THREADS - 1) / THREADS; ++i) {
        const int index = i * THREADS + tid;
        if (WEIGHT_NBYTES / 16 % THREADS == 0 || index < WEIGHT_NBYTES / 16) {
            copy_async(stage + index * 16, source + index * 16, true);
        }
    }
    const unsigned patch = stage + WEIGHT_SPACE;
#pragma unroll
    for (int i = 0; i < (PATCH_PIXELS * CHUNKS + THREADS - 1) / THREADS; ++i) {
        const int index = i * THREADS + tid;
        const int pixel = index / CHUNKS, chunk = index % CHUNKS;
        const int y = at.y0 + pixel / PITCH - PAD, column = at.x0 + pixel % PITCH - PAD;
        const int channel = step * DEPTH + chunk * 8;
        const bool wanted = static_cast<unsigned>(y) < static_cast<unsigned>(at.side) &&
                            static_cast<unsigned>(column) < static_cast<unsigned>(at.side) && channel < at.cin;
        const long long offset = (static_cast<long long>(at.sample * at.side + y) * at.side + column) * at.cin + channel;
        if (PATCH_PIXELS * CHUNKS % THREADS == 0 || index < PATCH_PIXELS * CHUNKS) {
            copy_async(patch + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16, wanted ? x + offset : x, wanted);
        }
    }
}

// Sixteen positions by sixteen input channels, for the pixel that this lane addresses.
__device__ __forceinline__ void load_positions(unsigned (&a)[4], unsigned patch, int pixel, int chunk) {
    load_matrices(a, patch + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16);
}

__device__ __forceinline__ void accumulate(float (&sum)[MF][NF * 4], unsigned stage, int warp_m, int warp_n, int lane) {
    const unsigned patch = stage + WEIGHT_SPACE;
    const int a_half = lane >> 4;
    int pixels[MF];
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const int position = (warp_m * MF + m) * 16 + (lane & 15);
        pixels[m] = row_of(position) * PITCH + column_of(position);
    }
#if WGMMA
    unsigned a[2][MF + (REUSES_ROWS ? 2 : 0)][4];
    const unsigned long long weights = matrix_descriptor(stage + warp_n * WARP_CHANNELS * DEPTH * 2);
#else
    const int b_row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, b_half = lane >> 3 & 1;
#endif
#pragma unroll
    for (int k = 0; k < DEPTH / 16; ++k) {
#pragma unroll
        for (int dx = 0; dx < KERNEL; ++dx) {
#if WGMMA
#if REUSES_ROWS
            const int turn = (k * KERNEL + dx) & 1;
#pragma unroll
            for (int r = 0; r < MF + 2; ++r) load_positions(a[turn][r], patch, pixels[0] + r * PITCH + dx, k * 2 + a_half);
            wgmma_fence();
#pragma unroll
            for (int dy = 0; dy < KERNEL; ++dy) {
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    wgmma<WARP_CHANNELS>(sum[m], a[turn][m + dy], weights + ((dy * KERNEL + dx) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
                }
            }
            wgmma_commit();
            wgmma_wait<1>();
#else
#pragma unroll
            for (int dy = 0; dy < KERNEL; ++dy) {
                // Registers of products under way may not be written: one turn at a time.
#pragma unroll
                for (int m = 0; m < MF; ++m) load_positions(a[dy & 1][m], patch, pixels[m] + dy * PITCH + dx, k * 2 + a_half);
                wgmma_fence();
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    wgmma<WARP_CHANNELS>(sum[m], a[dy & 1][m], weights + ((dy * KERNEL + dx) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
                }
                wgmma_commit();
                wgmma_wait<0>();
            }
#endif
#else
#if REUSES_ROWS
            unsigned a[MF + 2][4];
#pragma unroll
            for (int r = 0; r < MF + 2; ++r) load_positions(a[r], patch, pixels[0] + r * PITCH + dx, k * 2 + a_half);
#endif
#pragma unroll
            for (int dy = 0; dy < KERNEL; ++dy) {
#if !REUSES_ROWS
                unsigned a[MF][4];
#pragma unroll
                for (int m = 0; m < MF; ++m) load_positions(a[m], patch, pixels[m] + dy * PITCH + dx, k * 2 + a_half);
#endif
#pragma unroll
                for (int n = 0; n < NF; n += 2) {
                    unsigned b[4];
                    const int row = b_row + n * 8;
                    load_matrices(b, stage + ((dy * KERNEL + dx) * CHANNELS + row) * (DEPTH * 2) +
                                         exchanged(k * 2 + b_half, row) * 16);
#pragma unroll
                    for (int m = 0; m < MF; ++m) {
                        const int f = REUSES_ROWS ? m + dy : m;
                        multiply(sum[m] + n * 4, a[f], b[0], b[1]);
                        multiply(sum[m] + n * 4 + 4, a[f], b[2], b[3]);
                    }
                }
            }
#endif
        }
    }
#if WGMMA
    wgmma_wait<0>();
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) modulated_conv(
    const T* __restrict__ x, const void* __restrict__ weight, T* __restrict__ y, T* __restrict__ y_raw,
    const float* __restrict__ demod, const float* __restrict__ next_style, const float* __restrict__ bias,
    const float* __restrict__ noise, const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source,
    float noise_strength, int noise_layer, const T* __restrict__ skip, const float* __restrict__ taps,
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts,
    float* __restrict__ workspace, unsigned* __restrict__ counters, int batch, int side, int cin, int cout,
    int demod_stride, int style_stride, float gain, float clamp) {
    extern __shared__ unsigned char unaligned[];
    __shared__ float2 shared_demod_bias[CHANNELS];
    __shared__ float shared_style[CHANNELS];
    __shared__ float shared_noise[POSITIONS];
#if HAS_RGB
    __shared__ float shared_rgb[IMG_CHANNELS][CHANNELS];
#endif
    unsigned char* const pool = unaligned + (1024 - (shared_address(unaligned) & 1023)) % 1024;
    const unsigned stages = shared_address(pool);
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    const int sample = blockIdx.z / SPLIT, share = blockIdx.z % SPLIT;
    const int tiles_across = side / COLUMNS;
    const Place at = {sample, static_cast<int>(blockIdx.x) / tiles_across * ROWS, static_cast<int>(blockIdx.x) % tiles_across * COLUMNS, side, cin};
    const int n0 = blockIdx.y * CHANNELS;

    const int all_steps = (cin + DEPTH - 1) / DEPTH, steps_a_share = (all_steps + SPLIT - 1) / SPLIT;
    const int first = share * steps_a_share;
    const int steps = max(0, min(all_steps - first, steps_a_share));
    const unsigned char* const packed =
        static_cast<const unsigned char*>(weight) + static_cast<long long>(blockIdx.y) * all_steps * WEIGHT_NBYTES;
#pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s < steps) load_stage(stages + s * STAGE_NBYTES, first + s, x, packed, at);
        commit_copies();
    }
    // What the end needs a channel and a pixel is fetched while the first copies are under way.
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool there = channel < cout;
        shared_demod_bias[i] = make_float2(!there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * GAIN_BEFORE,
                                           there && bias ? bias[channel] * GAIN_BEFORE : 0.0f);
        shared_style[i] = !there ? 0.0f : next_style ? next_style[sample * style_stride + channel] : 1.0f;
#if HAS_RGB
        const float style = there ? rgb_style[sample * style_stride + channel] : 0.0f;
        for (int c = 0; c < IMG_CHANNELS; ++c) shared_rgb[c][i] = there ? rgb_weight[c * cout + channel] * style : 0.0f;
#endif
    }
    for (int i = tid; i < POSITIONS; i += THREADS) {
        const int pixel = (at.y0 + i / COLUMNS) * side + at.x0 + i % COLUMNS;
        shared_noise[i] = noise ? noise_value(noise, noise_source, noise_gain, noise_strength, noise_layer, pixel) * GAIN_BEFORE : 0.0f;
    }

    float sum[MF][NF * 4];
#pragma unroll
    for (int m = 0; m < MF; ++m) {
#pragma unroll
        for (int i = 0; i < NF * 4; ++i) sum[m][i] = 0.0f;
    }
    for (int step = 0; step < steps; ++step) {
#if STAGES == 1
        if (step > 0) {
            __syncthreads();
            load_stage(stages, first + step, x, packed, at);
            commit_copies();
        }
#endif
        wait_copies<AHEAD - 1>();
#if WGMMA
        publish_shared();
#endif
        __syncthreads();
#if STAGES > 1
        const int ahead = step + AHEAD;
        if (ahead < steps) load_stage(stages + ahead % STAGES * STAGE_NBYTES, first + ahead, x, packed, at);
        commit_copies();
#endif
        accumulate(sum, stages + step % STAGES * STAGE_NBYTES, warp_m, warp_n, lane);
    }
    wait_copies<0>();
    __syncthreads();

#if SPLIT > 1
    {
        __shared__ bool is_last;
        const int tile = (sample * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        float4* const parts = reinterpret_cast<float4*>(workspace) + static_cast<long long>(tile) * SPLIT * (MF * NF) * THREADS + tid;
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                parts[(share * (MF * NF) + m * NF + n) * THREADS] = make_float4(sum[m][n * 4], sum[m][n * 4 + 1], sum[m][n * 4 + 2], sum[m][n * 4 + 3]);
            }
        }
        __threadfence();
        __syncthreads();
        if (tid == 0) {
            is_last = atomicAdd(counters + tile, 1u) == SPLIT - 1;
            if (is_last) counters[tile] = 0;
        }
        __syncthreads();
        if (!is_last) return;
        __threadfence();
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
                for (int s = 0; s < SPLIT; ++s) {  // always in this order: the same bits every time
                    const float4 part = __ldcg(parts + (s * (MF * NF) + m * NF + n) * THREADS);
                    total.x += part.x;
                    total.y += part.y;
                    total.z += part.z;
                    total.w += part.w;
                }
                sum[m][n * 4] = total.x;
                sum[m][n * 4 + 1] = total.y;
                sum[m][n * 4 + 2] = total.z;
                sum[m][n * 4 + 3] = total.w;
            }
        }
    }
#endif

    // The activations, in place. A lane holds, of each fragment, two channels of the positions lane / 4 and lane / 4 + 8.
#if HAS_RGB
    float rgb[MF][2][IMG_CHANNELS];
#pragma unroll
    for (int m = 0; m < MF; ++m) {
#pragma unroll
        for (int i = 0; i < 2 * IMG_CHANNELS; ++i) rgb[m][i / IMG_CHANNELS][i % IMG_CHANNELS] = 0.0f;
    }
#endif
#pragma unroll
    for (int n = 0; n < NF; ++n) {
        const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
        const float2 first_channel = shared_demod_bias[local], second_channel = shared_demod_bias[local + 1];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                const int row = row_of(position), column = column_of(position);
                const float shift = shared_noise[row * COLUMNS + column];
                float v0 = finish(sum[m][n * 4 + half * 2], first_channel.x, shift, first_channel.y, GAIN_AFTER, clamp);
                float v1 = finish(sum[m][n * 4 + half * 2 + 1], second_channel.x, shift, second_channel.y, GAIN_AFTER, clamp);
#if HAS_SKIP
                if (n0 + local < cout) {
                    float pair[2] = {v0, v1};
                    add_doubled<2>(pair, skip + static_cast<long long>(sample) * side * side / 4 * cout + n0 + local, taps, side, cout,
                                   at.y0 + row, at.x0 + column);
                    v0 = pair[0];
                    v1 = pair[1];
                }
#endif
                sum[m][n * 4 + half * 2] = v0;
                sum[m][n * 4 + half * 2 + 1] = v1;
#if HAS_RGB
#pragma unroll
                for (int c = 0; c < IMG_CHANNELS; ++c) rgb[m][half][c] += v0 * shared_rgb[c][local] + v1 * shared_rgb[c][local + 1];
#endif
            }
        }
    }

#if HAS_RGB
    float* const rgb_sums = reinterpret_cast<float*>(pool);  // [WARPS_N][POSITIONS][IMG_CHANNELS]
#pragma unroll
    for (int m = 0; m < MF; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
#pragma unroll
            for (int c = 0; c < IMG_CHANNELS; ++c) {
                float value = rgb[m][half][c];
                value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
                value += __shfl_xor_sync(0xFFFFFFFFu, value, 2);
                if ((lane & 3) == 0) rgb_sums[(warp_n * POSITIONS + row_of(position) * COLUMNS + column_of(position)) * IMG_CHANNELS + c] = value;
            }
        }
    }
    __syncthreads();
    for (int i = tid; i < POSITIONS * IMG_CHANNELS; i += THREADS) {
        float value = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS_N; ++w) value += rgb_sums[w * POSITIONS * IMG_CHANNELS + i];
        const int pixel = i / IMG_CHANNELS;
        const long long target = static_cast<long long>(blockIdx.y * batch + sample) * side * side + (at.y0 + pixel / COLUMNS) * side + at.x0 + pixel % COLUMNS;
        rgb_parts[target * IMG_CHANNELS + i % IMG_CHANNELS] = value;
    }
    __syncthreads();
#endif

    // Through shared memory, so that whole 16-byte groups of channels go out side by side.
#pragma unroll
    for (int kind = 0; kind < 2; ++kind) {
        T* const target = kind == 0 ? y : y_raw;
        if (target == nullptr) continue;
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
            const float s0 = kind == 0 ? shared_style[local] : 1.0f, s1 = kind == 0 ? shared_style[local + 1] : 1.0f;
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                    const int pixel = row_of(position) * COLUMNS + column_of(position);
                    *reinterpret_cast<unsigned*>(pool + pixel * STORE_PITCH + local * 2) =
                        to_half2(sum[m][n * 4 + half * 2] * s0, sum[m][n * 4 + half * 2 + 1] * s1);
                }
            }
        }
        __syncthreads();
        for (int i = tid; i < POSITIONS * (CHANNELS / 8); i += THREADS) {
            const int pixel = i / (CHANNELS / 8), channel = i % (CHANNELS / 8) * 8;
            if (n0 + channel < cout) {
                const long long offset = (static_cast<long long>(sample * side + at.y0 + pixel / COLUMNS) * side + at.x0 + pixel % COLUMNS) * cout + n0 + channel;
                *reinterpret_cast<uint4*>(target + offset) = *reinterpret_cast<const uint4*>(pool + pixel * STORE_PITCH + channel * 2);
            }
        }
        __syncthreads();
    }
}
