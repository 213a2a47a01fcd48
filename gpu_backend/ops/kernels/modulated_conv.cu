// A 3 x 3 or 1 x 1 convolution of scaled activations as an implicit matrix product on tensor cores, with everything that
// follows it: demodulation, noise, bias, activation, gain, clamp, resnet's skip, the block's part of toRGB, and the style
// of the convolution that reads the result. The formula is that of gpu_backend/ops/modulated_conv.py.
//
// A block computes row tiles of ROWS x COLUMNS pixels for CHANNELS output channels, up to ROW_TILES of them down a column tile. Positions
// are the rows of the product, sixteen a fragment; output channels are its columns; it is summed over the input channels,
// DEPTH a step, and the taps. The pixels of a step, halo included, lie in shared memory once and serve all taps.
//
// Macros: ROWS COLUMNS CHANNELS DEPTH STAGES WARPS_M WARPS_N SPLIT_K ROW_TILES WEIGHTS_IN_SMEM WGMMA MIN_BLOCKS
// (gpu_backend/ops/kernels/conv_tile.py), KERNEL 1|3, PADDING (zeros around the input), HAS_PARTIAL_TILES (1: tiles may reach over the
// right and lower border), USE_TMA (parts/tile_loop.cuh), ACTIVATION, HAS_RGB, IMG_CHANNELS up to 8, HAS_SKIP, TAPS. HALF is 1.
// MOMENTS: of StyleGAN1, whose noise has a strength a channel and whose y no style; of every block it leaves `moments`
// (batch, blocks, cout).
//
// Shared memory from the first multiple of 1024 bytes on (ConvGeometry.dynamic_nbytes in conv_tile.py):
//     weights     all steps x WEIGHT_SPACE                     with WEIGHTS_IN_SMEM
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights, if they do not stay
//     ...
//     stage STAGES - 1
//     store       POSITIONS x STORE_PITCH: outputs on their way to whole lines of y and y_raw; toRGB's sums of warps
//     moments     with MOMENTS and ROW_TILES > 1; with one row tile they reuse the stages
// All but weights that stay is LOOP_NBYTES, alignment included, as ConvGeometry counts it.
// Static: demodulation and bias, style or noise strength, noise of two row tiles, toRGB's weights times styles, barriers.
//
// Pipeline of a row tile, copies AHEAD steps in front, across the end of a row tile too:
//     copies    | s+1 -> stage | s+2 -> stage | ...            TMA by one thread, or cp.async by all
//     products  | step s       | step s+1     | ... | sums of split-K slices
//     noise     | of the next row tile, fetched in step 0, stored after it
//     epilogue                                      | activation -> words -> toRGB products; words -> store -> y, y_raw
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"

#define THREADS (32 * WARPS_M * WARPS_N)
#define KERNEL_TAPS (KERNEL * KERNEL)
#define BEFORE PADDING
#define PATCH_ROWS (ROWS + KERNEL - 1)
#define PATCH_COLUMNS (COLUMNS + KERNEL - 1)
// A fragment that is a run of sixteen pixels of one row serves the taps of three rows: it is loaded once for all. Rows a
// multiple of eight pixels apart are swizzled alike, so their addresses differ by constants.
#define REUSES_ROWS (COLUMNS >= 16 && KERNEL == 3)
#define PITCH (COLUMNS >= 16 ? (PATCH_COLUMNS + 7) / 8 * 8 : PATCH_COLUMNS)
#define POSITIONS (ROWS * COLUMNS)
#define MF (POSITIONS / 16 / WARPS_M)  // fragments of sixteen positions a warp
#define NF (CHANNELS / 8 / WARPS_N)    // groups of eight channels a warp
#define WARP_CHANNELS (CHANNELS / WARPS_N)
#define STORE_PITCH (CHANNELS * 2 + (CHANNELS % 16 == 0 ? 16 : 0))  // bytes of a pixel in the store buffer: eight meet all banks
#define STORES (POSITIONS * (CHANNELS / 8))  // of 16 bytes
#define NOISES ((POSITIONS + THREADS - 1) / THREADS)
#define TILES_ALONG(count, size) (HAS_PARTIAL_TILES ? ((count) + (size) - 1) / (size) : (count) / (size))
#include "parts/tile_loop.cuh"
#if MOMENTS
#include "parts/moments.cuh"
#endif

#define RGB_SUMS_PITCH (HAS_RGB && WARPS_N > 1 ? WARPS_N * IMG_CHANNELS * 4 : 0)  // bytes of a position's sums of toRGB
#define STORE_NBYTES (POSITIONS * (STORE_PITCH > RGB_SUMS_PITCH ? STORE_PITCH : RGB_SUMS_PITCH))
static_assert(1024 + STAGES * STAGE_NBYTES + STORE_NBYTES <= LOOP_NBYTES, "stages and store buffer lie in the launch's shared memory");

// Positions and pixels are unsigned: they are divided by powers of two, which is one instruction then.
__device__ __forceinline__ int row_of(unsigned position) {
    if (COLUMNS >= 16) return position / 16 % ROWS;
    return position / COLUMNS;
}

__device__ __forceinline__ int column_of(unsigned position) {
    if (COLUMNS >= 16) return position / 16 / ROWS * 16 + position % 16;
    return position % COLUMNS;
}

__device__ __forceinline__ void accumulate(
    float (&sum)[MF][NF * 4], const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
#if WGMMA
    unsigned a[2][MF + (REUSES_ROWS ? 2 : 0)][4];
    const unsigned matrix = matrix_descriptor(weights + warp_n * WARP_CHANNELS * DEPTH * 2);
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
                    wgmma<WARP_CHANNELS>(sum[m], a[turn][m + dy], matrix + ((dy * KERNEL + dx) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
                }
            }
            wgmma_commit();
            wgmma_wait<1>();
#else
#pragma unroll
            for (int dy = 0; dy < KERNEL; ++dy) {
                const int turn = ((k * KERNEL + dx) * KERNEL + dy) & 1;
#pragma unroll
                for (int m = 0; m < MF; ++m) load_positions(a[turn][m], patch, pixels[m] + dy * PITCH + dx, k * 2 + a_half);
                wgmma_fence();
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    wgmma<WARP_CHANNELS>(sum[m], a[turn][m], matrix + ((dy * KERNEL + dx) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
                }
                wgmma_commit();
                wgmma_wait<1>();
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
                    ldmatrix_x4(b, weights + ((dy * KERNEL + dx) * CHANNELS + row) * (DEPTH * 2) +
                                         swizzle(k * 2 + b_half, row) * 16);
#pragma unroll
                    for (int m = 0; m < MF; ++m) {
                        const int f = REUSES_ROWS ? m + dy : m;
                        mma_m16n8k16(sum[m] + n * 4, a[f], b[0], b[1]);
                        mma_m16n8k16(sum[m] + n * 4 + 4, a[f], b[2], b[3]);
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
    LAYER_PARAMETERS,
#if HAS_SKIP
    const T* __restrict__ skip, const float* __restrict__ taps,
#endif
#if HAS_RGB
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts,
#endif
#if SPLIT_K > 1
    float* __restrict__ workspace, unsigned* __restrict__ counters,
#endif
    SIZE_PARAMETERS
#if MOMENTS
    , const float* __restrict__ strengths, float2* __restrict__ moments
#endif
#if USE_TMA
    , const __grid_constant__ TensorMap tma_map
#endif
) {
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float2 shared_demod_bias[CHANNELS];
#if MOMENTS
    __shared__ __align__(16) half_bits shared_strength[CHANNELS];
#else
    __shared__ __align__(16) half_bits shared_style[CHANNELS];
#endif
    __shared__ float shared_noise[2][POSITIONS];
#if HAS_RGB
    __shared__ __align__(16) half_bits shared_rgb[8][CHANNELS + 8];  // rows of the picture's channels, the rest zero
#endif
    unsigned char* const pool = unaligned + (1024 - (shared_address(unaligned) & 1023)) % 1024;
    const int tid = threadIdx.x, own_lane = tid & 31, own_warp_m = tid / 32 % WARPS_M, own_warp_n = tid / 32 / WARPS_M;
    const int sample = blockIdx.z / SPLIT_K, slice = blockIdx.z % SPLIT_K;
    const int side_in = side + KERNEL - 1 - 2 * PADDING;
    const int column_tiles = TILES_ALONG(side, COLUMNS), x0 = static_cast<int>(blockIdx.x) % column_tiles * COLUMNS;
    const int first_row = static_cast<int>(blockIdx.x) / column_tiles * (ROW_TILES * ROWS);
    const int row_tiles = min(ROW_TILES, TILES_ALONG(side - first_row, ROWS));
    const int n0 = blockIdx.y * CHANNELS;

    const int all_steps = (cin + DEPTH - 1) / DEPTH, steps_a_slice = (all_steps + SPLIT_K - 1) / SPLIT_K;
    const int first_step = slice * steps_a_slice;
    const ColumnTile column_tile = {
        x + static_cast<long long>(sample) * side_in * side_in * cin,
        static_cast<const unsigned char*>(weight) + static_cast<long long>(blockIdx.y) * all_steps * WEIGHT_NBYTES,
        x0, side_in, cin, first_step, max(0, min(all_steps - first_step, steps_a_slice)),
#if USE_TMA
        &tma_map, sample,
#endif
    };
    TileLoop loop = {shared_address(pool), shared_address(pool) + (WEIGHTS_IN_SMEM ? column_tile.steps * WEIGHT_SPACE : 0), 0, 0, row_tiles, first_row, ROWS, 0, 0};
    unsigned char* const store = pool + (loop.stages - loop.smem_weights) + STAGES * STAGE_NBYTES;
    loop.begin(column_tile);

    // What the end needs a channel and a pixel is fetched while the first copies are under way.
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool there = channel < cout;
        shared_demod_bias[i] = make_float2(!there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * GAIN_BEFORE,
                                           there && bias ? bias[channel] * GAIN_BEFORE : 0.0f);
#if MOMENTS
        shared_strength[i] = to_half(there && strengths ? strengths[channel] : 0.0f);
#else
        shared_style[i] = to_half(!there ? 0.0f : next_style ? next_style[sample * style_stride + channel] : 1.0f);
#endif
#if HAS_RGB
        const float style = there ? rgb_style[sample * style_stride + channel] : 0.0f;
#pragma unroll
        for (int c = 0; c < 8; ++c) shared_rgb[c][i] = to_half(c < IMG_CHANNELS && there ? rgb_weight[c * cout + channel] * style : 0.0f);
#endif
    }
    auto is_inside = [&](int y0, unsigned pixel) {  // of a row tile's pixels in rows
        return !HAS_PARTIAL_TILES || (y0 + pixel / COLUMNS < side && x0 + pixel % COLUMNS < side);
    };
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * GAIN_BEFORE, noise_layer);
    auto noise_of = [&](int row_tile, int i) {
        const unsigned position = i * THREADS + (MOMENTS ? opaque(tid) : tid);
        const int pixel = (first_row + row_tile * ROWS + position / COLUMNS) * side + x0 + position % COLUMNS;
        if (row_tile >= row_tiles || position >= POSITIONS || !is_inside(first_row + row_tile * ROWS, position)) return 0.0f;
        return layer_noise.fetch(pixel);
    };
    auto keep_noise = [&](int row_tile, const float (&values)[NOISES]) {
#pragma unroll
        for (int i = 0; i < NOISES; ++i) {
            if (i * THREADS + tid < POSITIONS) shared_noise[row_tile & 1][i * THREADS + tid] = values[i] * layer_noise.strength;
        }
    };
    float noises[NOISES];
#pragma unroll
    for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(0, i);
    keep_noise(0, noises);

    int pixels[MF];  // in the patch, of the position whose row this lane addresses
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const unsigned position = (own_warp_m * MF + m) * 16 + (own_lane & 15);
        pixels[m] = row_of(position) * PITCH + column_of(position);
    }
#if WGMMA
    const int product_warp_n = WARPS_N == 1 ? 0 : warp_uniform(own_warp_n);
#else
    const int product_warp_n = own_warp_n;
#endif
#if MOMENTS
    unsigned char* const partials_at = ROW_TILES > 1 ? store + POSITIONS * STORE_PITCH : pool;
#endif
    for (int row_tile = 0; row_tile < row_tiles; ++row_tile) {
        const int y0 = first_row + row_tile * ROWS, corner = y0 * side + x0;  // the row tile's first pixel
        float sum[MF][NF * 4];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < NF * 4; ++i) sum[m][i] = 0.0f;
        }
        for (int step = 0; step < column_tile.steps; ++step) {
            const unsigned stage = loop.next_stage(column_tile, row_tile == 0 && step == 0);
            if (ROW_TILES > 1 && step == 0) {
#pragma unroll
                for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(row_tile + 1, i);
            }
            accumulate(sum, pixels, stage, WEIGHTS_IN_SMEM ? loop.weights_of_step(step) : stage + PATCH_NBYTES, product_warp_n, own_lane);
            if (!DECOUPLED && ROW_TILES > 1 && step == 0) keep_noise(row_tile + 1, noises);
            loop.leave_stage();
        }
        loop.end_steps(column_tile);
        if (DECOUPLED && ROW_TILES > 1) keep_noise(row_tile + 1, noises);
#if SPLIT_K > 1
        if (!reduce_slices<MF * NF * 4>(&sum[0][0], workspace, counters, (sample * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, slice)) return;
#endif

        const int lane = opaque(own_lane), warp_m = opaque(own_warp_m), warp_n = opaque(own_warp_n);
        // A lane holds, of each fragment, two channels of the positions lane / 4 and lane / 4 + 8: as it happens, just what it
        // holds of the left factor of a product. So toRGB is another product, by the picture's few channels.
        unsigned words[MF][NF][2];
        unsigned noise_at_row[MF][2];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                const float value = shared_noise[row_tile & 1][row_of(position) * COLUMNS + column_of(position)];
                noise_at_row[m][half] = to_half2(value, value);
            }
        }
        const unsigned bound = to_half2(clamp, clamp);
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
            const float4 pair = *reinterpret_cast<const float4*>(&shared_demod_bias[local]);
#if MOMENTS
            const unsigned strength_pair = *reinterpret_cast<const unsigned*>(&shared_strength[local]);
#endif
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float v0 = sum[m][n * 4 + half * 2] * pair.x + pair.y, v1 = sum[m][n * 4 + half * 2 + 1] * pair.z + pair.w;
#if MOMENTS
                    const unsigned noise_pair = multiply_add2(noise_at_row[m][half], strength_pair, 0u);
#else
                    const unsigned noise_pair = noise_at_row[m][half];
#endif
                    words[m][n][half] = activated(v0, v1, noise_pair, GAIN_AFTER, bound);
#if HAS_SKIP
                    float sums[2];
                    from_half2(words[m][n][half], sums[0], sums[1]);
                    const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                    if (n0 + local < cout) {
                        add_doubled<2>(sums, skip + static_cast<long long>(sample) * side * side / 4 * cout + n0 + local, taps, side, cout,
                                       y0 + row_of(position), x0 + column_of(position));
                    }
                    words[m][n][half] = to_half2(sums[0], sums[1]);
#endif
                }
            }
        }

#if HAS_RGB
        float rgb[MF][4];
#pragma unroll
        for (int m = 0; m < MF; ++m) rgb[m][0] = rgb[m][1] = rgb[m][2] = rgb[m][3] = 0.0f;
#pragma unroll
        for (int n = 0; n < NF; n += 2) {
            const half_bits* const row = &shared_rgb[lane >> 2][warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2];
            const unsigned b0 = *reinterpret_cast<const unsigned*>(row), b1 = *reinterpret_cast<const unsigned*>(row + 8);
#pragma unroll
            for (int m = 0; m < MF; ++m) {
                const unsigned a[4] = {words[m][n][0], words[m][n][1], words[m][n + 1][0], words[m][n + 1][1]};
                mma_m16n8k16(rgb[m], a, b0, b1);
            }
        }
        float* const parts = rgb_parts + (static_cast<long long>(blockIdx.y * batch + sample) * side * side + corner) * IMG_CHANNELS;
#if WARPS_N > 1
        float* const rgb_sums = reinterpret_cast<float*>(store);  // [WARPS_N][POSITIONS][IMG_CHANNELS]
#endif
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int c = (lane & 3) * 2 + (i & 1), position = (warp_m * MF + m) * 16 + i / 2 * 8 + (lane >> 2);
                if (c >= IMG_CHANNELS) continue;
#if WARPS_N == 1
                if (!is_inside(y0, row_of(position) * COLUMNS + column_of(position))) continue;
#endif
#if WARPS_N > 1
                rgb_sums[(warp_n * POSITIONS + row_of(position) * COLUMNS + column_of(position)) * IMG_CHANNELS + c] = rgb[m][i];
#else
                parts[(row_of(position) * side + column_of(position)) * IMG_CHANNELS + c] = rgb[m][i];
#endif
            }
        }
#if WARPS_N > 1
        __syncthreads();
        for (unsigned i = tid; i < POSITIONS * IMG_CHANNELS; i += THREADS) {
            float value = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS_N; ++w) value += rgb_sums[w * POSITIONS * IMG_CHANNELS + i];
            const unsigned position = i / IMG_CHANNELS;
            if (!is_inside(y0, position)) continue;
            parts[(position / COLUMNS * side + position % COLUMNS) * IMG_CHANNELS + i % IMG_CHANNELS] = value;
        }
        __syncthreads();
#endif
#endif

        // Through shared memory, so that whole 16-byte groups of channels go out side by side.
#pragma unroll
        for (int kind = 0; kind < 2; ++kind) {
            T* const target = kind == 0 ? y : y_raw;
            if (target == nullptr) continue;
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
#if !MOMENTS
                const unsigned style = *reinterpret_cast<const unsigned*>(&shared_style[local]);
#endif
#pragma unroll
                for (int m = 0; m < MF; ++m) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                        const unsigned pixel = row_of(position) * COLUMNS + column_of(position);
#if MOMENTS
                        *reinterpret_cast<unsigned*>(store + pixel * STORE_PITCH + local * 2) = words[m][n][half];
#else
                        *reinterpret_cast<unsigned*>(store + pixel * STORE_PITCH + local * 2) =
                            kind == 0 ? multiply_add2(words[m][n][half], style, 0u) : words[m][n][half];
#endif
                    }
                }
            }
            __syncthreads();
            T* const to = target + (static_cast<long long>(sample) * side * side + corner) * cout + n0;
#if MOMENTS
            Moments partials(partials_at);
            if (kind == 0) {  // the pivot is the first pixel
                half_bits* const kept = partials.pivots(0) + partials.tid % MOMENT_GROUPS * 8;
                const half_bits* const one = row_tile == 0 ? reinterpret_cast<half_bits*>(store) + partials.tid % MOMENT_GROUPS * 8 : kept;
                partials.set_pivot(one);
                if (row_tile == 0 && partials.tid < MOMENT_GROUPS) *reinterpret_cast<uint4*>(kept) = *reinterpret_cast<const uint4*>(one);
            }
#endif
#pragma unroll
            for (int turn = 0; turn < (STORES + THREADS - 1) / THREADS; ++turn) {
                const unsigned i = opaque(tid) + turn * THREADS, pixel = i / (CHANNELS / 8), channel = i % (CHANNELS / 8) * 8;
                if ((STORES % THREADS == 0 || i < STORES) && n0 + channel < cout && is_inside(y0, pixel)) {
                    const uint4 eight = *reinterpret_cast<const uint4*>(store + pixel * STORE_PITCH + channel * 2);
                    *reinterpret_cast<uint4*>(to + static_cast<int>((pixel / COLUMNS * side + pixel % COLUMNS) * cout + channel)) = eight;
#if MOMENTS
                    if (kind == 0) partials.add({eight.x, eight.y, eight.z, eight.w});
#endif
                }
            }
#if MOMENTS
            if (kind == 0) partials.end_row_tile(row_tile == 0);
#endif
            if (kind == 0 && y_raw != nullptr) __syncthreads();
        }
    }
#if MOMENTS
    const int block = opaque(blockIdx.x), across = TILES_ALONG(side, COLUMNS);
    const int rows = min(ROW_TILES * ROWS, side - block / across * (ROW_TILES * ROWS)), columns = min(COLUMNS, side - block % across * COLUMNS);
    Moments(partials_at).store(moments + (static_cast<long long>(sample) * gridDim.x + blockIdx.x) * cout + n0, min(CHANNELS, cout - n0), 0,
               [&](int warp) { return warp == 0 ? rows * columns : 0; });
#endif
}
