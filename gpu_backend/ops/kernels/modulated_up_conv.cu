// The up-convolution as one kernel: stride-2 transposed 3 x 3 convolution on tensor cores, the FIR filter from shared
// memory, then demodulation, noise, bias, activation, gain, clamp and the style of the convolution that reads the result.
// The formula is that of gpu_backend/ops/modulated_up_conv.py.
//
// The transposed picture t has four values for each position (m, n) of the input, one a phase:
//     t[2m, 2n]     = W00 x[m, n] + W20 x[m-1, n] + W02 x[m, n-1] + W22 x[m-1, n-1]
//     t[2m, 2n+1]   = W01 x[m, n] + W21 x[m-1, n]
//     t[2m+1, 2n]   = W10 x[m, n] + W12 x[m, n-1]
//     t[2m+1, 2n+1] = W11 x[m, n]
// so nine products a position instead of the thirty-six of the composed filter. A block computes t for ROWS x COLUMNS
// positions and the halo that the filter needs around them, for CHANNELS output channels, and filters it where it lies: t
// never leaves the multiprocessor. Outside the picture x is zero, and so is t.
//
// Macros: as in modulated_conv.cu, without KERNEL, HAS_RGB and HAS_SKIP; TAPS is the length of the FIR filter.
// part: types
// part: tensor_core
// part: activation
// part: philox
// part: epilogue

#define THREADS (32 * WARPS_M * WARPS_N)
#define CHUNKS (DEPTH / 8)
// z[u] = sum_p f[p] t[u - LEFT + p] needs positions from HALO_LOW before to HALO_HIGH behind.
#define LEFT (1 + (TAPS + 1) / 2 - 2)
#define HALO_LOW ((LEFT + 1) / 2)
#define HALO_HIGH ((TAPS - LEFT) / 2)
#define M_ROWS (ROWS + HALO_LOW + HALO_HIGH)
#define M_COLUMNS (COLUMNS + HALO_LOW + HALO_HIGH)
#define POSITIONS (M_ROWS * M_COLUMNS)
#define PITCH (M_COLUMNS + 1)
#define PATCH_PIXELS ((M_ROWS + 1) * PITCH)
#define PATCH_NBYTES ((PATCH_PIXELS * DEPTH * 2 + 1023) / 1024 * 1024)
#define WEIGHT_NBYTES (9 * CHANNELS * DEPTH * 2)
#define WEIGHT_SPACE ((WEIGHT_NBYTES + 1023) / 1024 * 1024)
#define STAGE_NBYTES (PATCH_NBYTES + WEIGHT_SPACE)
#define AHEAD (STAGES > 1 ? STAGES - 1 : 1)  // steps on their way while one is summed; one stage: none
#define FRAGMENTS ((POSITIONS + 15) / 16)
#define MF ((FRAGMENTS + WARPS_M - 1) / WARPS_M)
#define NF (CHANNELS / 8 / WARPS_N)
#define WARP_CHANNELS (CHANNELS / WARPS_N)
#define GROUPS (CHANNELS / 8)
#define T_COLUMNS (2 * M_COLUMNS)

// A gain may be applied before an activation that is homogeneous: once a channel instead of once a number.
#if ACTIVATION <= 2
#define GAIN_AFTER 1.0f
#define GAIN_BEFORE gain
#else
#define GAIN_AFTER gain
#define GAIN_BEFORE 1.0f
#endif

struct Place {
    int sample, y0, x0, side, cin;  // of the first output position, in pixels of the input
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
        const int y = at.y0 + pixel / PITCH - HALO_LOW - 1, column = at.x0 + pixel % PITCH - HALO_LOW - 1;
        const int channel = step * DEPTH + chunk * 8;
        const bool wanted = static_cast<unsigned>(y) < static_cast<unsigned>(at.side) &&
                            static_cast<unsigned>(column) < static_cast<unsigned>(at.side) && channel < at.cin;
        const long long offset = (static_cast<long long>(at.sample * at.side + y) * at.side + column) * at.cin + channel;
        if (PATCH_PIXELS * CHUNKS % THREADS == 0 || index < PATCH_PIXELS * CHUNKS) {
            copy_async(patch + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16, wanted ? x + offset : x, wanted);
        }
    }
}

__device__ __forceinline__ void load_positions(unsigned (&a)[4], unsigned patch, int pixel, int chunk) {
    load_matrices(a, patch + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16);
}

// The nine products: which of the four neighbours, which tap, which phase. Neighbour: 2 * (row before) + (column before).
__device__ __forceinline__ constexpr int neighbour_of(int product) { return product < 4 ? 0 : product < 6 ? 2 : product < 8 ? 1 : 3; }
__device__ __forceinline__ constexpr int tap_of(int product) {  // 3 * ky + kx
    return product == 0 ? 0 : product == 1 ? 1 : product == 2 ? 3 : product == 3 ? 4 : product == 4 ? 6 : product == 5 ? 7
         : product == 6 ? 2 : product == 7 ? 5 : 8;
}
__device__ __forceinline__ constexpr int phase_of(int product) {  // 2 * row + column
    return product < 4 ? product : product == 5 ? 1 : product == 7 ? 2 : 0;
}

__device__ __forceinline__ void accumulate(
    float (&sum)[4][MF][NF * 4], const int (&pixels)[MF], unsigned stage, int warp_n, int lane) {
    const unsigned patch = stage + WEIGHT_SPACE;
    const int a_half = lane >> 4;
#if WGMMA
    const unsigned long long weights = matrix_descriptor(stage + warp_n * WARP_CHANNELS * DEPTH * 2);
    unsigned a[2][4][4];
#else
    const int b_row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, b_half = lane >> 3 & 1;
#endif
#pragma unroll
    for (int k = 0; k < DEPTH / 16; ++k) {
#if WGMMA
#pragma unroll
        for (int m = 0; m < MF; ++m) {
            const int turn = (k * MF + m) & 1;
#pragma unroll
            for (int i = 0; i < 4; ++i) load_positions(a[turn][i], patch, pixels[m] - (i >> 1) * PITCH - (i & 1), k * 2 + a_half);
            wgmma_fence();
#pragma unroll
            for (int p = 0; p < 9; ++p) {
                wgmma<WARP_CHANNELS>(sum[phase_of(p)][m], a[turn][neighbour_of(p)], weights + (tap_of(p) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
            }
            wgmma_commit();
            wgmma_wait<1>();
        }
#else
        unsigned a[MF][4][4];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) load_positions(a[m][i], patch, pixels[m] - (i >> 1) * PITCH - (i & 1), k * 2 + a_half);
        }
#pragma unroll
        for (int p = 0; p < 9; ++p) {
#pragma unroll
            for (int n = 0; n < NF; n += 2) {
                unsigned b[4];
                const int row = b_row + n * 8;
                load_matrices(b, stage + (tap_of(p) * CHANNELS + row) * (DEPTH * 2) + exchanged(k * 2 + b_half, row) * 16);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    multiply(sum[phase_of(p)][m] + n * 4, a[m][neighbour_of(p)], b[0], b[1]);
                    multiply(sum[phase_of(p)][m] + n * 4 + 4, a[m][neighbour_of(p)], b[2], b[3]);
                }
            }
        }
#endif
    }
#if WGMMA
    wgmma_wait<0>();
#endif
}

// Where eight channels of t at a row and a column of the tile lie; groups are exchanged against bank conflicts.
__device__ __forceinline__ int t_offset(int row, int column, int group) {
    return ((row * T_COLUMNS + column) * GROUPS + (group ^ ((column >> 1) & (GROUPS - 1)))) * 16;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) modulated_up_conv(
    const T* __restrict__ x, const void* __restrict__ weight, T* __restrict__ y, T* __restrict__ y_raw,
    const float* __restrict__ demod, const float* __restrict__ next_style, const float* __restrict__ bias,
    const float* __restrict__ noise, const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source,
    float noise_strength, int noise_layer, const T* __restrict__ skip, const float* __restrict__ taps,
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts,
    float* __restrict__ workspace, unsigned* __restrict__ counters, int batch, int side, int cin, int cout,
    int demod_stride, int style_stride, float gain, float clamp) {
    extern __shared__ unsigned char unaligned[];
    __shared__ float shared_demod[CHANNELS], shared_bias[CHANNELS], shared_style[CHANNELS];
    __shared__ float shared_noise[4 * ROWS * COLUMNS];
    unsigned char* const pool = unaligned + (1024 - (shared_address(unaligned) & 1023)) % 1024;
    const unsigned stages = shared_address(pool);
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    const int sample = blockIdx.z / SPLIT, share = blockIdx.z % SPLIT;
    const int side_in = side / 2, tiles_across = (side_in + COLUMNS - 1) / COLUMNS;
    const Place at = {sample, static_cast<int>(blockIdx.x) / tiles_across * ROWS, static_cast<int>(blockIdx.x) % tiles_across * COLUMNS, side_in, cin};
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
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool there = channel < cout;
        shared_demod[i] = !there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * GAIN_BEFORE;
        shared_bias[i] = there && bias ? bias[channel] * GAIN_BEFORE : 0.0f;
        shared_style[i] = !there ? 0.0f : next_style ? next_style[sample * style_stride + channel] : 1.0f;
    }
    for (int i = tid; i < 4 * ROWS * COLUMNS; i += THREADS) {
        const int row = 2 * at.y0 + i / (2 * COLUMNS), column = 2 * at.x0 + i % (2 * COLUMNS);
        shared_noise[i] = noise && row < side && column < side
                              ? noise_value(noise, noise_source, noise_gain, noise_strength, noise_layer, row * side + column) * GAIN_BEFORE
                              : 0.0f;
    }

    int pixels[MF];  // in the patch, of the position whose row this lane addresses
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const int position = min((warp_m * MF + m) * 16 + (lane & 15), POSITIONS - 1);
        pixels[m] = (position / M_COLUMNS + 1) * PITCH + position % M_COLUMNS + 1;
    }
    float sum[4][MF][NF * 4];
#pragma unroll
    for (int phase = 0; phase < 4; ++phase) {
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < NF * 4; ++i) sum[phase][m][i] = 0.0f;
        }
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
        accumulate(sum, pixels, stages + step % STAGES * STAGE_NBYTES, warp_n, lane);
    }
    wait_copies<0>();
    __syncthreads();

#if SPLIT > 1
    {
        __shared__ bool is_last;
        const int tile = (sample * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        float4* const parts = reinterpret_cast<float4*>(workspace) + static_cast<long long>(tile) * SPLIT * (4 * MF * NF) * THREADS + tid;
#pragma unroll
        for (int i = 0; i < 4 * MF * NF; ++i) {
            const float* const own = sum[i / (MF * NF)][i / NF % MF] + i % NF * 4;
            parts[(share * (4 * MF * NF) + i) * THREADS] = make_float4(own[0], own[1], own[2], own[3]);
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
        for (int i = 0; i < 4 * MF * NF; ++i) {
            float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
            for (int s = 0; s < SPLIT; ++s) {  // always in this order: the same bits every time
                const float4 part = __ldcg(parts + (s * (4 * MF * NF) + i) * THREADS);
                total.x += part.x;
                total.y += part.y;
                total.z += part.z;
                total.w += part.w;
            }
            float* const own = sum[i / (MF * NF)][i / NF % MF] + i % NF * 4;
            own[0] = total.x;
            own[1] = total.y;
            own[2] = total.z;
            own[3] = total.w;
        }
    }
#endif

    // t * demod into shared memory: of unit variance, more or less, so 16 bits hold it.
#pragma unroll
    for (int n = 0; n < NF; ++n) {
        const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
        const float d0 = shared_demod[local], d1 = shared_demod[local + 1];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                if (position >= POSITIONS) continue;
                const int row = position / M_COLUMNS * 2, column = position % M_COLUMNS * 2;
#pragma unroll
                for (int phase = 0; phase < 4; ++phase) {
                    *reinterpret_cast<unsigned*>(pool + t_offset(row + phase / 2, column + phase % 2, local / 8) + local % 8 * 2) =
                        to_half2(sum[phase][m][n * 4 + half * 2] * d0, sum[phase][m][n * 4 + half * 2 + 1] * d1);
                }
            }
        }
    }
    __syncthreads();

    // The filter, along the row first, then down the column, two channels a word: a thread owns eight channels of a column of
    // outputs and keeps the filtered rows that the next output needs. taps[TAPS - 1 - p] is f[p]: convolution turns the
    // filter round.
    unsigned f[TAPS];
#pragma unroll
    for (int p = 0; p < TAPS; ++p) f[p] = to_half2(taps[TAPS - 1 - p], taps[TAPS - 1 - p]);
#define COLUMN_JOBS (2 * COLUMNS * GROUPS)
#define MOST_RUNS (THREADS / COLUMN_JOBS > 1 ? THREADS / COLUMN_JOBS : 1)
#define RUNS (MOST_RUNS > 2 * ROWS ? 2 * ROWS : MOST_RUNS)
#define RUN_ROWS ((2 * ROWS + RUNS - 1) / RUNS)
    for (int job = tid; job < COLUMN_JOBS * RUNS; job += THREADS) {
        const int group = job % GROUPS, column = job / GROUPS % (2 * COLUMNS), run = job / COLUMN_JOBS;
        const int channel = n0 + group * 8;
        if (channel >= cout || 2 * at.x0 + column >= side) continue;
        const int first_row = run * RUN_ROWS, last_row = min(min(first_row + RUN_ROWS, 2 * ROWS), side - 2 * at.y0);
        float bias_of[8], style_of[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            bias_of[i] = shared_bias[group * 8 + i];
            style_of[i] = shared_style[group * 8 + i];
        }
        unsigned filtered[TAPS][4];
        // Output (row, column) of the tile takes rows row + BEFORE .. row + BEFORE + TAPS - 1 of t's tile.
        const int before = 2 * HALO_LOW - LEFT;
        T* target = y + (static_cast<long long>(sample * side + 2 * at.y0 + first_row) * side + 2 * at.x0 + column) * cout + channel;
#pragma unroll TAPS
        for (int row = first_row - (TAPS - 1); row < last_row; ++row) {
#pragma unroll
            for (int p = 0; p < TAPS - 1; ++p) {
#pragma unroll
                for (int i = 0; i < 4; ++i) filtered[p][i] = filtered[p + 1][i];
            }
#pragma unroll
            for (int p = 0; p < TAPS; ++p) {
                const uint4 values = *reinterpret_cast<const uint4*>(pool + t_offset(row + before + TAPS - 1, column + before + p, group));
                const unsigned words[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
                for (int i = 0; i < 4; ++i) filtered[TAPS - 1][i] = multiply_add2(f[p], words[i], p == 0 ? 0u : filtered[TAPS - 1][i]);
            }
            if (row < first_row) continue;
            const float shift = shared_noise[row * 2 * COLUMNS + column];
            float out[8];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                unsigned z = 0u;
#pragma unroll
                for (int p = 0; p < TAPS; ++p) z = multiply_add2(f[p], filtered[p][i], z);
                from_half2(z, out[2 * i], out[2 * i + 1]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) out[i] = finish(out[i], 1.0f, shift, bias_of[i], GAIN_AFTER, clamp) * style_of[i];
            store_many<8>(target, out);
            target += static_cast<long long>(side) * cout;
        }
    }
}
