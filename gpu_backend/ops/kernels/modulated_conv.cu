// A 3 x 3 or 1 x 1 convolution of scaled activations as an implicit matrix product on tensor cores, fused with what follows
// it: demodulation, noise, bias, activation, gain, clamp, a resnet's skip, the block's part of toRGB, and the style of the
// convolution that reads the result. gpu_backend/ops/modulated_conv.py has the formula.
//
// A thread block computes CHANNELS output channels of up to ROW_TILES row tiles, one below the other in a column tile. A row
// tile has ROWS x COLUMNS pixels. In the matrix product, rows are positions (pixels of a row tile), sixteen a fragment; columns
// are output channels; the sum runs over input channels, DEPTH a step, and over the taps of the kernel. The patch of a step
// (the row tile's input pixels, halo included) lies in shared memory once and serves all taps.
//
// Macros, given by fused_recipe in gpu_backend/cuda/launches/fused_convs.py:
//     ROWS COLUMNS CHANNELS DEPTH STAGES WARPS_M WARPS_N SPLIT_K ROW_TILES WEIGHTS_IN_SMEM USE_WGMMA MIN_BLOCKS: the tile, see
//         ConvTile in gpu_backend/ops/kernels/conv_tile.py
//     KERNEL: 1 or 3. PADDING: zeros around the input. HAS_PARTIAL_TILES: tiles may reach over the right and lower border
//     USE_TMA, DECOUPLED: see parts/tile_loop.cuh. LOOP_NBYTES: ConvGeometry.loop_nbytes
//     HALF: 1, activations and weights are fp16; 0, they are fp32 and multiplied as tf32. BF16X3, without HALF: see parts/words.cuh.
//         FP8_X, FP8_Y, with HALF: see parts/e4m3.cuh. y_raw is fp16 then, too.
//     ACTIVATION: see parts/activation.cuh
//     HAS_RGB: toRGB's products, for a picture of IMG_CHANNELS channels, 8 at most
//     HAS_SKIP: adds a resnet's skip, upsampled by a filter of TAPS taps
//     HAS_MOMENTS: a layer of StyleGAN1, in fp16: noise has a strength per channel, the output has no style, and each block
//         writes the moments of its pixels, `moments`: (batch, blocks, cout)
//     NORMALISES: with HAS_MOMENTS and ROW_TILES 1, a block has the whole picture: it writes y normalised, as adain.cu does, and no moments.
//         next_style: the layer's scales, then its shifts
//     HAS_BLEND, without HAS_MOMENTS: see parts/blend.cuh
//     FOLDED: with HAS_MOMENTS and KERNEL 3, one picture: the weights have the normalisation of x, see fold_adain.cu
//
// Dynamic shared memory, from the first multiple of 1024 bytes on (ConvGeometry.dynamic_nbytes in conv_tile.py):
//     weights     all steps x WEIGHT_SPACE                     with WEIGHTS_IN_SMEM
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights, unless WEIGHTS_IN_SMEM
//     ...
//     stage STAGES - 1
//     store       POSITIONS x STORE_PITCH: outputs, gathered to whole lines of y and y_raw; before, toRGB's sums per warp
//     moments     with HAS_MOMENTS and ROW_TILES > 1; with one row tile they reuse the stages
// All but the weights of WEIGHTS_IN_SMEM is LOOP_NBYTES, alignment included.
// Static: per channel, demodulation and bias, style or noise strength, toRGB's weights times styles; noise of two row tiles; barriers.
//
// Pipeline of a row tile. Copies run AHEAD steps in front of the products, also across the end of a row tile:
//     copies    | s+1 -> stage | s+2 -> stage | ...            TMA by one thread, or cp.async by all threads
//     products  | step s       | step s+1     | ... | sums of split-K slices
//     noise     | of the next row tile, fetched in step 0, stored after it
//     epilogue                                      | activation -> words -> toRGB products; words -> store -> y, y_raw
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/blend.cuh"

// `#if` stands where the preprocessor must decide: parameters that only some variants have, and code whose types or
// instructions the other variants lack. All other choices are `if constexpr`.

// Constants are enumerators: NVRTC gives every constexpr variable memory on the GPU, used or not.
enum : int {
    THREADS = 32 * WARPS_M * WARPS_N,
    KERNEL_TAPS = KERNEL * KERNEL,
    BEFORE = PADDING,  // rows and columns of the patch before the row tile's first pixel
    PATCH_ROWS = ROWS + KERNEL - 1,
    PATCH_COLUMNS = COLUMNS + KERNEL - 1,
    PITCH = COLUMNS >= 16 ? (PATCH_COLUMNS + 7) / 8 * 8 : PATCH_COLUMNS,  // pixels from a row of the patch to the next
    // A fragment of sixteen pixels of one row serves the taps of three rows, so it is loaded once for all three. Rows that are
    // a multiple of eight pixels apart are swizzled alike, so that their addresses differ by constants.
    REUSES_ROWS = COLUMNS >= 16 && KERNEL == 3,
    POSITIONS = ROWS * COLUMNS,
    MF = POSITIONS / 16 / WARPS_M,  // fragments of sixteen positions of a warp
    NF = CHANNELS / 8 / WARPS_N,    // groups of eight output channels of a warp
    WARP_CHANNELS = CHANNELS / WARPS_N,
    NOISES = (POSITIONS + THREADS - 1) / THREADS,  // noise values of a row tile that a thread fetches
};

#include "parts/tile_loop.cuh"
#include "parts/folded_input.cuh"
#if HAS_MOMENTS
#include "parts/moments.cuh"
#else
struct Moments {  // of a variant without them
    __device__ __forceinline__ explicit Moments(void*) {}
    __device__ __forceinline__ void begin_row_tile(const unsigned char*, bool) {}
    __device__ __forceinline__ void add(const unsigned (&)[4]) {}
    __device__ __forceinline__ void end_row_tile(bool) {}
};
#endif

enum : int {
    STORE_PITCH = ELEMENT_NBYTES * (CHANNELS + (CHANNELS % 16 == 0 ? 8 : 0)),  // bytes from a pixel to the next: other banks
    STORE_CHUNKS = POSITIONS * (CHANNELS / CHUNK),                             // of 16 bytes
    HAS_RGB_SUMS = HAS_RGB && WARPS_N > 1,  // warps share a position, and add up their sums of toRGB in the store buffer
    RGB_SUMS_PITCH = HAS_RGB_SUMS ? WARPS_N * IMG_CHANNELS * 4 : 0,            // bytes of a position's
    STORE_NBYTES = POSITIONS * (STORE_PITCH > RGB_SUMS_PITCH ? STORE_PITCH : RGB_SUMS_PITCH),
};
static_assert(1024 + STAGES * STAGE_NBYTES + STORE_NBYTES <= LOOP_NBYTES, "stages and store buffer lie in the launch's shared memory");
static_assert((!FP8_X && !FP8_Y) || (HALF && !HAS_MOMENTS), "x and y may be e4m3 in fp16 mode");
static_assert(!HAS_MOMENTS || (HALF && !HAS_RGB && !HAS_SKIP), "a layer of StyleGAN1 is fp16, and its picture follows the normalisation");
static_assert(!NORMALISES || (HAS_MOMENTS && ROW_TILES == 1 && CHANNELS <= THREADS), "a block normalises the picture that it has");
static_assert(!HAS_BLEND || !HAS_MOMENTS, "a layer of StyleGAN1 is blended after its normalisation");
static_assert(!FOLDED || (HAS_MOMENTS && KERNEL == 3 && PADDING == 1), "a normalisation is folded into a layer of StyleGAN1");

// Tiles of SIZE pixels that cover `count`. SIZE is no parameter, so that the compiler folds it into one addition.
template <int SIZE>
__device__ __forceinline__ int tiles_along(int count) {
    return HAS_PARTIAL_TILES ? (count + SIZE - 1) / SIZE : count / SIZE;
}

// Row and column of a position in its row tile. Positions and pixels are unsigned: a division by a power of two is then one shift.
__device__ __forceinline__ int row_of(unsigned position) {
    if constexpr (COLUMNS >= 16) return position / 16 % ROWS;
    return position / COLUMNS;
}

__device__ __forceinline__ int column_of(unsigned position) {
    if constexpr (COLUMNS >= 16) return position / 16 / ROWS * 16 + position % 16;
    return position % COLUMNS;
}

// sum += patch * weights for one step: all taps, DEPTH input channels. `patch` and `weights` lie in shared memory, complete;
// pixels[m]: of the patch, where the position that this lane loads meets the first tap.
__device__ __forceinline__ void accumulate(
    float (&sum)[MF][NF * 4], const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
    float own[MF][NF * 4] = {};  // of the step
    auto& chain = BF16X3 ? own : sum;
#if USE_WGMMA
    // Two sets of fragments: while products read one from registers, the other is loaded.
    Fragment a[2][MF + (REUSES_ROWS ? 2 : 0)];
    const unsigned matrix = matrix_descriptor(weights + warp_n * WARP_CHANNELS * ROW_NBYTES);
    auto weights_of = [&](int tap, int k) { return matrix + (tap * CHANNELS * ROW_NBYTES + k * PRODUCT_NBYTES >> 4); };
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
        for (int dx = 0; dx < KERNEL; ++dx) {
            if constexpr (REUSES_ROWS) {
                const int turn = (k * KERNEL + dx) & 1;
#pragma unroll
                for (int r = 0; r < MF + 2; ++r) load_positions(a[turn][r], patch, pixels[0] + r * PITCH + dx, k, a_half);
                wgmma_fence();
#pragma unroll
                for (int dy = 0; dy < KERNEL; ++dy) {
#pragma unroll
                    for (int m = 0; m < MF; ++m) wgmma_step<WARP_CHANNELS>(chain[m], a[turn][m + dy], weights_of(dy * KERNEL + dx, k));
                }
                wgmma_commit();
                wgmma_wait<1>();
            } else {
#pragma unroll
                for (int dy = 0; dy < KERNEL; ++dy) {
                    const int turn = ((k * KERNEL + dx) * KERNEL + dy) & 1;
#pragma unroll
                    for (int m = 0; m < MF; ++m) load_positions(a[turn][m], patch, pixels[m] + dy * PITCH + dx, k, a_half);
                    wgmma_fence();
#pragma unroll
                    for (int m = 0; m < MF; ++m) wgmma_step<WARP_CHANNELS>(chain[m], a[turn][m], weights_of(dy * KERNEL + dx, k));
                    wgmma_commit();
                    wgmma_wait<1>();
                }
            }
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < MF; ++m) wgmma_fence_sums(chain[m]);
#else
    const int b_row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, b_half = lane >> 3 & 1;
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
        for (int dx = 0; dx < KERNEL; ++dx) {
            Fragment a[MF + (REUSES_ROWS ? 2 : 0)];
            if constexpr (REUSES_ROWS) {
#pragma unroll
                for (int r = 0; r < MF + 2; ++r) load_positions(a[r], patch, pixels[0] + r * PITCH + dx, k, a_half);
            }
#pragma unroll
            for (int dy = 0; dy < KERNEL; ++dy) {
                if constexpr (!REUSES_ROWS) {
#pragma unroll
                    for (int m = 0; m < MF; ++m) load_positions(a[m], patch, pixels[m] + dy * PITCH + dx, k, a_half);
                }
#pragma unroll
                for (int n = 0; n < NF; n += 2) {
                    Fragment b;
                    load_weights(b, weights, dy * KERNEL + dx, b_row + n * 8, k, b_half);
#pragma unroll
                    for (int m = 0; m < MF; ++m) {
                        const int f = REUSES_ROWS ? m + dy : m;
                        mma_step(chain[m] + n * 4, a[f], b, 0);
                        mma_step(chain[m] + n * 4 + 4, a[f], b, 1);
                    }
                }
            }
        }
    }
#endif
    if constexpr (BF16X3) add_chain<MF * NF * 4>(&sum[0][0], &own[0][0]);
}

// `starts`: see StartConstants.
template <int WIDTH>
__device__ __forceinline__ void start_sums(
    float (&sum)[MF][NF * 4], const float (&starts)[9][WIDTH], int x0, int y0, int side, int warp_m, int warp_n, int lane) {
    const int first = warp_n * WARP_CHANNELS + (lane & 3) * 2;
    if (x0 > 0 && y0 > 0 && x0 + COLUMNS < side && y0 + ROWS < side) {  // all positions begin alike
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const float2 start = *reinterpret_cast<const float2*>(&starts[4][first + n * 8]);
#pragma unroll
            for (int m = 0; m < MF; ++m) {
                sum[m][n * 4] = sum[m][n * 4 + 2] = start.x, sum[m][n * 4 + 1] = sum[m][n * 4 + 3] = start.y;
            }
        }
        return;
    }
#pragma unroll
    for (int m = 0; m < MF; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
            const int y = y0 + row_of(position), x = x0 + column_of(position);
            const int row = y == 0 ? 0 : y == side - 1 ? 2 : 1, column = x == 0 ? 0 : x == side - 1 ? 2 : 1;
            const float* const from = &starts[3 * row + column][first];
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const float2 start = *reinterpret_cast<const float2*>(from + n * 8);
                sum[m][n * 4 + half * 2] = start.x, sum[m][n * 4 + half * 2 + 1] = start.y;
            }
        }
    }
}

// The noise of a pixel in two neighbouring channels. `noise`: in each half of a word, strength of the layer in it; with HAS_MOMENTS
// the strength is the channel's.
__device__ __forceinline__ Pair noise_of_channels(unsigned noise, const Pair& strength) {
    Pair pair;
#pragma unroll
    for (int i = 0; i < PAIR_WORDS; ++i) pair.words[i] = HAS_MOMENTS ? multiply_add2(noise, strength.words[i], 0u) : noise;
    return pair;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) modulated_conv(
    LAYER_PARAMETERS,
#if HAS_SKIP
    const T* __restrict__ skip, const float* __restrict__ taps,
#endif
#if HAS_RGB
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts,
#endif
#if HAS_BLEND
    BLEND_PARAMETERS,
#endif
#if SPLIT_K > 1
    float* __restrict__ workspace, unsigned* __restrict__ counters,
#endif
    SIZE_PARAMETERS
#if HAS_MOMENTS
    , const float* __restrict__ strengths, float2* __restrict__ moments
#endif
#if NORMALISES
    , int channels, float epsilon
#endif
#if FOLDED
    , const float* __restrict__ tap_sums, int tap_sum_parts
#endif
#if USE_TMA
    , const __grid_constant__ TensorMap tma_map
#endif
) {
    // Parameters that this variant lacks, for the branches that it discards.
#if !HAS_SKIP
    const T* const skip = nullptr;
    const float* const taps = nullptr;
#endif
#if !HAS_RGB
    const float *const rgb_weight = nullptr, *const rgb_style = nullptr;
    float* const rgb_parts = nullptr;
#endif
#if !HAS_BLEND
    const T* const second = nullptr;
    const float* const mask = nullptr;
    const int mask_side = 1;
    const float mask_step = 1.0f;
#endif
#if !HAS_MOMENTS
    const float* const strengths = nullptr;
    float2* const moments = nullptr;
#endif
#if !NORMALISES
    const int channels = 0;
    const float epsilon = 0.0f;
#endif
#if !FOLDED
    const float* const tap_sums = nullptr;
    const int tap_sum_parts = 0;
#endif
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float2 shared_demod_bias[CHANNELS];
    __shared__ __align__(16) T shared_style[CHANNELS];  // of the convolution that reads y; with HAS_MOMENTS, strengths of the noise
    __shared__ float shared_noise[2][POSITIONS];
    __shared__ __align__(16) T shared_rgb[8][CHANNELS + 8];  // rows of the picture's channels, the rest zero
    unsigned char* const pool = unaligned + (1024 - (shared_address(unaligned) & 1023)) % 1024;
    const int tid = threadIdx.x, own_lane = tid & 31, own_warp_m = tid / 32 % WARPS_M, own_warp_n = tid / 32 / WARPS_M;
    const int sample = blockIdx.z / SPLIT_K, slice = blockIdx.z % SPLIT_K;
    const int side_in = side + KERNEL - 1 - 2 * PADDING;
    const int column_tiles = tiles_along<COLUMNS>(side), x0 = static_cast<int>(blockIdx.x) % column_tiles * COLUMNS;
    const int first_row = static_cast<int>(blockIdx.x) / column_tiles * (ROW_TILES * ROWS);
    const int row_tiles = min(ROW_TILES, tiles_along<ROWS>(side - first_row));
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

    __shared__ __align__(16) float shared_starts[9][FOLDED ? CHANNELS : 1];
    StartConstants<FOLDED ? CHANNELS : 1> starts;  // of one slice of split-K
    if constexpr (FOLDED) starts.fetch(tap_sums, slice == 0 ? tap_sum_parts : 0, gridDim.y * CHANNELS, n0, tid);

    // While the first copies are under way: what the epilogue needs per output channel, and the noise of the first row tile.
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool is_there = channel < cout;
        shared_demod_bias[i] = make_float2(!is_there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * (gain_before(gain) * FP8_X_UNIT),
                                           is_there && bias ? bias[channel] * gain_before(gain) : 0.0f);
        if constexpr (HAS_MOMENTS) {
            shared_style[i] = to_element(is_there && strengths ? strengths[channel] : 0.0f);
        } else {
            shared_style[i] = to_element(!is_there ? 0.0f : (next_style ? next_style[sample * style_stride + channel] : 1.0f) * FP8_Y_UNIT);
        }
        if constexpr (HAS_RGB) {
            const float style = is_there ? rgb_style[sample * style_stride + channel] : 0.0f;
#pragma unroll
            for (int c = 0; c < 8; ++c) shared_rgb[c][i] = to_factor(c < IMG_CHANNELS && is_there ? rgb_weight[c * cout + channel] * style : 0.0f);
        }
    }
    float own_scale = 0.0f, own_shift = 0.0f;  // of the thread's channel
    if constexpr (NORMALISES) {
        if (tid < CHANNELS && n0 + tid < channels) {
            const float* const own = next_style + sample * style_stride + n0 + tid;
            own_scale = own[0], own_shift = own[channels];
        }
    }
    auto is_inside = [&](int y0, unsigned pixel) {  // of the row tile that begins in row y0, pixels counted row by row
        return !HAS_PARTIAL_TILES || (y0 + pixel / COLUMNS < side && x0 + pixel % COLUMNS < side);
    };
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    auto fetch_noise = [&](int row_tile, int i) {
        const unsigned position = i * THREADS + (HAS_MOMENTS ? opaque(tid) : tid);
        const int pixel = (first_row + row_tile * ROWS + position / COLUMNS) * side + x0 + position % COLUMNS;
        if (row_tile >= row_tiles || position >= POSITIONS || !is_inside(first_row + row_tile * ROWS, position)) return 0.0f;
        return layer_noise.fetch(pixel);
    };
    auto store_noise = [&](int row_tile, const float (&values)[NOISES]) {
#pragma unroll
        for (int i = 0; i < NOISES; ++i) {
            if (i * THREADS + tid < POSITIONS) shared_noise[row_tile & 1][i * THREADS + tid] = values[i] * layer_noise.strength;
        }
    };
    float noises[NOISES];
#pragma unroll
    for (int i = 0; i < NOISES; ++i) noises[i] = fetch_noise(0, i);
    store_noise(0, noises);
    if constexpr (FOLDED) {
        starts.store(shared_starts, tid);
        __syncthreads();
        starts.add_up_taps(shared_starts, tid);
        __syncthreads();
    }

    int pixels[MF];  // of the patch, for the positions whose rows this lane loads from it
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const unsigned position = (own_warp_m * MF + m) * 16 + (own_lane & 15);
        pixels[m] = row_of(position) * PITCH + column_of(position);
    }
#if USE_WGMMA
    const int product_warp_n = WARPS_N == 1 ? 0 : warp_uniform(own_warp_n);
#else
    const int product_warp_n = own_warp_n;
#endif
    unsigned char* const partials_at = ROW_TILES > 1 ? store + POSITIONS * STORE_PITCH : pool;
    for (int row_tile = 0; row_tile < row_tiles; ++row_tile) {
        const int y0 = first_row + row_tile * ROWS, corner = y0 * side + x0;  // the row tile's first pixel
        float sum[MF][NF * 4];
        if constexpr (FOLDED) {
            start_sums(sum, shared_starts, x0, y0, side, opaque(own_warp_m), opaque(own_warp_n), opaque(own_lane));
        } else {
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int i = 0; i < NF * 4; ++i) sum[m][i] = 0.0f;
            }
        }
        for (int step = 0; step < column_tile.steps; ++step) {
            const unsigned stage = loop.next_stage(column_tile, row_tile == 0 && step == 0);
            if (ROW_TILES > 1 && step == 0) {
#pragma unroll
                for (int i = 0; i < NOISES; ++i) noises[i] = fetch_noise(row_tile + 1, i);
            }
            if constexpr (HAS_BLEND) {
                for (unsigned position = opaque(tid); step == 0 && position < POSITIONS; position += THREADS) {
                    const int pixel = corner + position / COLUMNS * side + position % COLUMNS;
                    if (n0 < cout && is_inside(y0, position)) prefetch(second + (pixel * cout + n0), min(CHANNELS, cout - n0));
                }
            }
            accumulate(sum, pixels, stage, WEIGHTS_IN_SMEM ? loop.weights_of_step(step) : stage + PATCH_NBYTES, product_warp_n, own_lane);
            if (!DECOUPLED && ROW_TILES > 1 && step == 0) store_noise(row_tile + 1, noises);
            loop.leave_stage();
        }
        loop.end_steps(column_tile);
        if (DECOUPLED && ROW_TILES > 1) store_noise(row_tile + 1, noises);
#if SPLIT_K > 1
        if (!reduce_slices<MF * NF * 4>(&sum[0][0], workspace, counters, (sample * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, slice)) return;
#endif

        // Epilogue, sum -> words. A thread holds, of fragment m, the positions lane / 4 and lane / 4 + 8 (half 0 and 1); of group n of
        // eight output channels, two neighbours.
        const int lane = opaque(own_lane), warp_m = opaque(own_warp_m), warp_n = opaque(own_warp_n);
        Pair words[MF][NF][2];
        unsigned noise_at_row[MF][2];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                const float value = shared_noise[row_tile & 1][row_of(position) * COLUMNS + column_of(position)];
                noise_at_row[m][half] = word_of(value);
            }
        }
        const unsigned bound = word_of(clamp);
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
            const float4 pair = *reinterpret_cast<const float4*>(&shared_demod_bias[local]);
            Pair strength;
            if constexpr (HAS_MOMENTS) strength = load_pair(&shared_style[local]);
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float v0 = sum[m][n * 4 + half * 2] * pair.x + pair.y, v1 = sum[m][n * 4 + half * 2 + 1] * pair.z + pair.w;
                    const Pair noise_pair = noise_of_channels(noise_at_row[m][half], strength);
                    words[m][n][half] = activated(v0, v1, noise_pair, gain_after(gain), bound, clamp);
                    if constexpr (HAS_SKIP) {
                        float sums[2];
                        from_pair(words[m][n][half], sums[0], sums[1]);
                        const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                        if (n0 + local < cout) {
                            add_doubled<2>(sums, skip + static_cast<long long>(sample) * side * side / 4 * cout + n0 + local, taps, side, cout,
                                           y0 + row_of(position), x0 + column_of(position));
                        }
                        words[m][n][half] = pair_of(sums[0], sums[1]);
                    }
                }
            }
        }

        if constexpr (HAS_BLEND) {
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                    const int row = row_of(position), column = column_of(position), pixel = corner + row * side + column;
                    if (!is_inside(y0, row * COLUMNS + column)) continue;
                    const float share = mask_at(mask, mask_side, mask_step, y0 + row, x0 + column);
                    if (share == 0.0f) continue;
                    const int channel = n0 + warp_n * WARP_CHANNELS + (lane & 3) * 2;
                    unsigned others[NF];
#pragma unroll
                    for (int n = 0; n < NF; ++n) {
                        others[n] = channel + n * 8 < cout ? *reinterpret_cast<const unsigned*>(second + (pixel * cout + channel + n * 8)) : 0u;
                    }
#pragma unroll
                    for (int n = 0; n < NF; ++n) words[m][n][half].words[0] = blended_word(words[m][n][half].words[0], others[n], share);
                }
            }
        }

        // words -> toRGB. A lane's words are just what it must hold of the left factor of a product, so toRGB is another product,
        // whose columns are the channels of the picture. Warps that share a position add up their sums in the store buffer.
        if constexpr (HAS_RGB) {
            float rgb[MF][4];
#pragma unroll
            for (int m = 0; m < MF; ++m) rgb[m][0] = rgb[m][1] = rgb[m][2] = rgb[m][3] = 0.0f;
#if HALF
#pragma unroll
            for (int n = 0; n < NF; n += 2) {
                const half_bits* const row = &shared_rgb[lane >> 2][warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2];
                const unsigned b0 = *reinterpret_cast<const unsigned*>(row), b1 = *reinterpret_cast<const unsigned*>(row + 8);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    const unsigned a[4] = {words[m][n][0].words[0], words[m][n][1].words[0], words[m][n + 1][0].words[0], words[m][n + 1][1].words[0]};
                    mma_m16n8k16(rgb[m], a, b0, b1);
                }
            }
#elif BF16X3
#pragma unroll
            for (int n = 0; n < NF; n += 2) {
                const float* const row = &shared_rgb[lane >> 2][warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2];
                unsigned b[PLANES][2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const Pair pair = load_pair(row + i * 8);
                    split_bf16(pair.words[0], pair.words[1], b[0][i], b[1][i]);
                }
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    unsigned a[PLANES][4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const Pair& pair = words[m][n + i / 2][i % 2];
                        split_bf16(pair.words[0], pair.words[1], a[0][i], a[1][i]);
                    }
                    mma_m16n8k16_bf16(rgb[m], a[1], b[0][0], b[0][1]);
                    mma_m16n8k16_bf16(rgb[m], a[0], b[1][0], b[1][1]);
                    mma_m16n8k16_bf16(rgb[m], a[0], b[0][0], b[0][1]);
                }
            }
#else
            // The instruction wants channels q and q + 4 of eight in lane quarter q, which holds 2 q and 2 q + 1: the sum in another order.
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const Pair b = load_pair(&shared_rgb[lane >> 2][warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2]);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    float values[2][2];
                    from_pair(words[m][n][0], values[0][0], values[0][1]), from_pair(words[m][n][1], values[1][0], values[1][1]);
                    const unsigned a[4] = {to_tf32(values[0][0]), to_tf32(values[1][0]), to_tf32(values[0][1]), to_tf32(values[1][1])};
                    mma_m16n8k8_tf32(rgb[m], a, b.words[0], b.words[1]);
                }
            }
#endif
            float* const parts = rgb_parts + (static_cast<long long>(blockIdx.y * batch + sample) * side * side + corner) * IMG_CHANNELS;
            float* const rgb_sums = reinterpret_cast<float*>(store);  // [WARPS_N][POSITIONS][IMG_CHANNELS]
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int c = (lane & 3) * 2 + (i & 1), position = (warp_m * MF + m) * 16 + i / 2 * 8 + (lane >> 2);
                    if (c >= IMG_CHANNELS) continue;
                    if constexpr (HAS_RGB_SUMS) {
                        rgb_sums[(warp_n * POSITIONS + row_of(position) * COLUMNS + column_of(position)) * IMG_CHANNELS + c] = rgb[m][i];
                    } else {
                        if (!is_inside(y0, row_of(position) * COLUMNS + column_of(position))) continue;
                        parts[(row_of(position) * side + column_of(position)) * IMG_CHANNELS + c] = rgb[m][i];
                    }
                }
            }
            if constexpr (HAS_RGB_SUMS) {
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
            }
        }

        // words -> store -> y and y_raw: through shared memory, so that neighbouring threads write neighbouring 16-byte chunks.
#pragma unroll
        for (int kind = 0; kind < 2; ++kind) {
            T* const target = kind == 0 ? reinterpret_cast<T*>(y) : y_raw;
            if (target == nullptr) continue;
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
                const Pair style = load_pair(&shared_style[local]);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                        const unsigned pixel = row_of(position) * COLUMNS + column_of(position);
                        store_pair(store + pixel * STORE_PITCH + local * ELEMENT_NBYTES, kind == 0 && !HAS_MOMENTS ? styled(words[m][n][half], style) : words[m][n][half]);
                    }
                }
            }
            __syncthreads();
            const long long first = (static_cast<long long>(sample) * side * side + corner) * cout + n0;
            Moments partials(partials_at);
            if (kind == 0) partials.begin_row_tile(store, row_tile == 0);
#pragma unroll
            for (int turn = 0; turn < (STORE_CHUNKS + THREADS - 1) / THREADS; ++turn) {
                const unsigned i = opaque(tid) + turn * THREADS, pixel = i / (CHANNELS / CHUNK), channel = i % (CHANNELS / CHUNK) * CHUNK;
                if ((STORE_CHUNKS % THREADS == 0 || i < STORE_CHUNKS) && n0 + channel < cout && is_inside(y0, pixel)) {
                    const uint4 chunk = *reinterpret_cast<const uint4*>(store + pixel * STORE_PITCH + channel * ELEMENT_NBYTES);
                    if constexpr (!NORMALISES) {
                        const int place = (pixel / COLUMNS * side + pixel % COLUMNS) * cout + channel;
                        if (FP8_Y && kind == 0) {
                            *reinterpret_cast<uint2*>(y + first + place) = make_uint2(to_e4m3x4(chunk.x, chunk.y), to_e4m3x4(chunk.z, chunk.w));
                        } else {
                            *reinterpret_cast<uint4*>(target + first + place) = chunk;
                        }
                    }
                    if constexpr (HAS_MOMENTS) {
                        if (kind == 0) partials.add({chunk.x, chunk.y, chunk.z, chunk.w});
                    }
                }
            }
            if (kind == 0) partials.end_row_tile(row_tile == 0);
            if (kind == 0 && y_raw != nullptr) __syncthreads();
        }
    }
#if HAS_MOMENTS
    const int block = opaque(blockIdx.x), across = tiles_along<COLUMNS>(side);
    const int rows = min(ROW_TILES * ROWS, side - block / across * (ROW_TILES * ROWS)), columns = min(COLUMNS, side - block % across * COLUMNS);
    float2* const found = NORMALISES ? shared_demod_bias : moments + (static_cast<long long>(sample) * gridDim.x + blockIdx.x) * cout + n0;
    Moments(partials_at).store(found, min(CHANNELS, cout - n0), 0, [&](int warp) { return warp == 0 ? rows * columns : 0; });
    if constexpr (NORMALISES) {  // factors and offsets, by the threads that wrote the moments
        if (tid < CHANNELS) {
            const float2 own = n0 + tid < channels ? found[tid] : make_float2(0.0f, 0.0f);
            const float factor = own_scale * rsqrtf(own.y / static_cast<float>(side * side) + epsilon);
            found[tid] = make_float2(factor, fmaf(-own.x, factor, own_shift));
        }
        __syncthreads();
        T* const to = y + static_cast<long long>(sample) * side * side * cout + n0;
        for (unsigned i = tid; i < STORE_CHUNKS; i += THREADS) {
            const unsigned pixel = i / (CHANNELS / CHUNK), channel = i % (CHANNELS / CHUNK) * CHUNK;
            if (n0 + channel >= cout || !is_inside(0, pixel)) continue;
            float v[8];
            load_many<8>(reinterpret_cast<const T*>(store + pixel * STORE_PITCH + channel * ELEMENT_NBYTES), v);
#pragma unroll
            for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e], found[channel + e].x, found[channel + e].y);
            store_many<8>(to + static_cast<int>((pixel / COLUMNS * side + pixel % COLUMNS) * cout + channel), v);
        }
    }
#endif
}
