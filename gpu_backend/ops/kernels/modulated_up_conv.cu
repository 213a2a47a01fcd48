// The up-convolution as one kernel: stride-2 transposed 3 x 3 convolution on tensor cores, the FIR filter from shared
// memory, then demodulation, noise, bias, activation, gain, clamp and the style of the convolution that reads the result.
// The formula is that of gpu_backend/ops/modulated_up_conv.py.
//
// The transposed picture t has four values for each position (m, n) of the input, one a phase:
//     t[2m, 2n]     = W00 x[m, n] + W20 x[m-1, n] + W02 x[m, n-1] + W22 x[m-1, n-1]
//     t[2m, 2n+1]   = W01 x[m, n] + W21 x[m-1, n]
//     t[2m+1, 2n]   = W10 x[m, n] + W12 x[m, n-1]
//     t[2m+1, 2n+1] = W11 x[m, n]
// so nine products a position instead of the thirty-six of the composed filter. A block goes down a column tile in row tiles of ROWS
// rows of positions, up to ROW_TILES of them, and filters each row tile where it lies: t never leaves the multiprocessor. The column tile
// is wider than its COLUMNS by the halo of the filter; downwards the filter carries its last rows from row tile to row tile.
// Outside the picture x is zero, and so is t. With ODD_BORDER the filter meets t's first and last numbers there instead,
// their signs turned, as StyleGAN1's blur wants it (gpu_backend/ops/adain_up_conv.py): only in the first and last outputs.
//
// Macros: as in modulated_conv.cu, without KERNEL, HAS_RGB and HAS_SKIP; TAPS is the length of the FIR filter; ODD_BORDER;
// HAS_Y, HAS_RAW: which of y and y_raw are stored;
// BINOMIAL, with TAPS 4: the filter is 1 3 3 1 over 4 an axis. It is then done in sums alone, as in streaming_up_conv.cu, with
// its scale in the demodulation and a 64th of the bias in every number of t;
// ADDS_PICTURE: more blocks, beyond grid_columns or grid_rows, add up the picture of the toRGB before, which nothing here
// reads (parts/picture_beside.cuh), with IMG_CHANNELS;
// BLURS_BIAS, with MOMENTS: the bias was added before the blur, which leaves three quarters of it at a border.
//
// Shared memory from the first multiple of 1024 bytes on (ConvGeometry.dynamic_nbytes in conv_tile.py):
//     weights     all steps x WEIGHT_SPACE                     with WEIGHTS_IN_SMEM
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights, if they do not stay
//     ...
//     stage STAGES - 1
//     t           8 x POSITIONS x CHANNELS bytes: four phases of fp16
//     carried     JOBS x TAPS x THREADS x 16 bytes: filtered rows from row tile to row tile, unless registers hold them
//     moments     with MOMENTS and ROW_TILES > 1; with one row tile they reuse the stages
// All but weights that stay is LOOP_NBYTES, alignment included, as ConvGeometry counts it.
// Static: demodulation, bias, style or noise strength, noise of NOISE_BUFFERS row tiles, barriers.
//
// Pipeline of a row tile, copies AHEAD steps in front, across the end of a row tile too:
//     copies    | s+1 -> stage | s+2 -> stage | ...            TMA by one thread, or cp.async by all
//     products  | step s       | step s+1     | ... | sums of split-K slices -> t
//     filter                                        | rows of t along x -> along y -> activation -> y or y_raw
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"

#define THREADS (32 * WARPS_M * WARPS_N)
#define KERNEL_TAPS 9
// z[u] = sum_p f[p] t[u - LEFT + p] needs positions from HALO_LOW before to HALO_HIGH behind.
#define LEFT (1 + (TAPS + 1) / 2 - 2)
#define HALO_LOW ((LEFT + 1) / 2)
#define HALO_HIGH ((TAPS - LEFT) / 2)
#define M_COLUMNS (COLUMNS + HALO_LOW + HALO_HIGH)
#define SEGMENT (ROW_TILES * ROWS - HALO_LOW - HALO_HIGH)  // rows of positions whose outputs a block makes
#define POSITIONS (ROWS * M_COLUMNS)
#define BEFORE (HALO_LOW + 1)
#define PATCH_ROWS (ROWS + 1)
#define PATCH_COLUMNS (M_COLUMNS + 1)
#define PITCH ((PATCH_COLUMNS + 7) / 8 * 8)
#define FRAGMENTS ((POSITIONS + 15) / 16)
#define MF ((FRAGMENTS + WARPS_M - 1) / WARPS_M)
#define NF (CHANNELS / 8 / WARPS_N)
#define WARP_CHANNELS (CHANNELS / WARPS_N)
#define GROUPS (CHANNELS / 8)
#define TURNS (MIN_BLOCKS > 1 || THREADS > 256 ? 1 : 2)  // a second set of positions' registers, where there are some left
#define SHORT_OF_REGISTERS (WGMMA && 16 * MF * NF + 16 + 32 > 65536 / (THREADS * MIN_BLOCKS))
#define T_COLUMNS (2 * M_COLUMNS)
#define MINUS_ONES 0xbc00bc00u
#if ODD_BORDER && TAPS != 4
#error "ODD_BORDER goes with a filter of 4 taps"
#endif
// The usual filter is done on two columns of outputs at a time, which share three of five columns of t. Where nothing is
// carried from row tile to row tile, the rows are dealt among as many threads as there are. Other filters are done column by column.
#define PAIRED (TAPS == 4 && !ODD_BORDER && !MOMENTS)
#if BINOMIAL && !PAIRED
#error "BINOMIAL is for paired columns"
#endif
#define FILTER_SCALE (BINOMIAL ? 0.0625f : 1.0f)  // of both axes
#define WORDS (ROW_TILES == 1 && THREADS < 4 * COLUMNS * GROUPS ? 4 : 2)  // of two channels, of each of a thread's columns
#define PAIR_JOBS (COLUMNS * GROUPS * 4 / WORDS)
#define PARTS (ROW_TILES > 1 || PAIR_JOBS >= THREADS ? 1 : THREADS / PAIR_JOBS < SEGMENT ? THREADS / PAIR_JOBS : SEGMENT)
#define PART_ROWS ((2 * SEGMENT + PARTS - 1) / PARTS)  // of outputs
#define COLUMN_JOBS (PAIRED ? PAIR_JOBS * PARTS : 2 * COLUMNS * GROUPS)
#define JOBS ((COLUMN_JOBS + THREADS - 1) / THREADS)
#define CARRIED_WORDS (PAIRED && ROW_TILES > 1 && JOBS == 1 && 16 * MF * NF <= 64)  // in registers, where the sums leave some
#define NOISE_COUNT (4 * ROWS * COLUMNS)
#define NOISE_BUFFERS (ROW_TILES == 1 ? 1 : DECOUPLED ? 3 : 2)  // decoupled, a warp may read one while another writes two further
#define NOISES ((NOISE_COUNT + THREADS - 1) / THREADS)
#include "parts/tile_loop.cuh"
#if ADDS_PICTURE
#include "parts/picture_beside.cuh"
#endif
#if MOMENTS
#include "parts/moments.cuh"
#endif

#define CARRIED_NBYTES (ROW_TILES > 1 && !CARRIED_WORDS ? JOBS * TAPS * THREADS * 16 : 0)
static_assert(1024 + STAGES * STAGE_NBYTES + 8 * POSITIONS * CHANNELS + CARRIED_NBYTES <= LOOP_NBYTES,
              "stages, t and carried rows lie in the launch's shared memory");

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
    float (&sum)[4][MF][NF * 4], const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
#if WGMMA
    const unsigned matrix = matrix_descriptor(weights + warp_n * WARP_CHANNELS * DEPTH * 2);
    unsigned a[TURNS][4][4];
#else
    const int b_row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, b_half = lane >> 3 & 1;
#endif
#pragma unroll
    for (int k = 0; k < DEPTH / 16; ++k) {
#if WGMMA
#pragma unroll
        for (int m = 0; m < MF; ++m) {
            const int turn = (k * MF + m) % TURNS;
            const int pixel = SHORT_OF_REGISTERS ? opaque(pixels[m]) : pixels[m];  // four addresses are not kept from step to step
#pragma unroll
            for (int i = 0; i < 4 - SHORT_OF_REGISTERS; ++i) load_positions(a[turn][i], patch, pixel - (i >> 1) * PITCH - (i & 1), k * 2 + a_half);
            wgmma_fence();
#pragma unroll
            for (int p = 0; p < 9; ++p) {
#if SHORT_OF_REGISTERS
                if (p == 8) {
                    wgmma_commit();
                    wgmma_wait<0>();
                    load_positions(a[turn][0], patch, pixel - PITCH - 1, k * 2 + a_half);
                    wgmma_fence();
                }
                wgmma<WARP_CHANNELS>(sum[phase_of(p)][m], a[turn][neighbour_of(p) % 3], matrix + (tap_of(p) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
#else
                wgmma<WARP_CHANNELS>(sum[phase_of(p)][m], a[turn][neighbour_of(p)], matrix + (tap_of(p) * CHANNELS * DEPTH * 2 + k * 32 >> 4));
#endif
            }
            wgmma_commit();
            wgmma_wait<TURNS - 1>();
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
                ldmatrix_x4(b, weights + (tap_of(p) * CHANNELS + row) * (DEPTH * 2) + swizzle(k * 2 + b_half, row) * 16);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    mma_m16n8k16(sum[phase_of(p)][m] + n * 4, a[m][neighbour_of(p)], b[0], b[1]);
                    mma_m16n8k16(sum[phase_of(p)][m] + n * 4 + 4, a[m][neighbour_of(p)], b[2], b[3]);
                }
            }
        }
#endif
    }
#if WGMMA
    wgmma_wait<0>();
#endif
}

#if MOMENTS
// What is left of the bias at an output.
__device__ __forceinline__ unsigned bias_share(int row, int column, int side) {
#if BLURS_BIAS
    const bool is_row = row == 0 || row == side - 1, is_column = column == 0 || column == side - 1;
    return is_row && is_column ? 0x38803880u : is_row || is_column ? 0x3A003A00u : ONES;
#else
    return ONES;
#endif
}
#endif

// Where t at a row and a column of the row tile lies; groups of eight channels are swizzled against bank conflicts. For
// paired columns even and odd ones are stored separately, so that neighbouring threads read neighbours.
#if PAIRED
__device__ __forceinline__ int t_offset(int row, int column) { return ((row * 2 + (column & 1)) * M_COLUMNS + (column >> 1)) * GROUPS * 16; }
__device__ __forceinline__ int t_group(int group, int column) {
    return (group ^ ((column >> 1) / (GROUPS < 8 ? 8 / GROUPS : 1) & (GROUPS - 1))) * 16;
}
#else
__device__ __forceinline__ int t_offset(int row, int column) { return (row * T_COLUMNS + column) * GROUPS * 16; }
__device__ __forceinline__ int t_group(int group, int column) { return (group ^ ((column >> 1) & (GROUPS - 1))) * 16; }
#endif
// Two or four words beside each other.
__device__ __forceinline__ void load_words(unsigned (&words)[2], const void* from) {
    const uint2 two = *static_cast<const uint2*>(from);
    words[0] = two.x, words[1] = two.y;
}
__device__ __forceinline__ void load_words(unsigned (&words)[4], const void* from) {
    const uint4 four = *static_cast<const uint4*>(from);
    words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
}
__device__ __forceinline__ void store_words(void* to, const unsigned (&words)[2]) { *static_cast<uint2*>(to) = make_uint2(words[0], words[1]); }
__device__ __forceinline__ void store_words(void* to, const unsigned (&words)[4]) {
    *static_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Activation, gain and clamp of two numbers; `bound` is the clamp as such a pair.
__device__ __forceinline__ unsigned activated_word(unsigned z, float gain_after, unsigned bound, float clamp) {
#if ACTIVATION <= 2 && LEVEL >= 800
    return activated2(z, bound);
#else
    float low, high;
    from_half2(z, low, high);
    return to_half2(bounded(activate(low) * gain_after, clamp), bounded(activate(high) * gain_after, clamp));
#endif
}

__device__ __forceinline__ void store_shared(unsigned address, unsigned value) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) modulated_up_conv(
    LAYER_PARAMETERS,
#if !BINOMIAL
    const float* __restrict__ taps,
#endif
#if SPLIT_K > 1
    float* __restrict__ workspace, unsigned* __restrict__ counters,
#endif
    SIZE_PARAMETERS
#if MOMENTS
    , const float* __restrict__ strengths, float2* __restrict__ moments
#endif
#if ADDS_PICTURE
    , PICTURE_PARAMETERS
#else
    , int grid_columns, int grid_rows
#endif
#if USE_TMA
    , const __grid_constant__ TensorMap tma_map
#endif
) {
#if ADDS_PICTURE
    const int beside = block_beside(grid_columns, grid_rows);
    if (beside >= 0) {
        if (beside < picture_blocks) {
            add_up_picture(beside, picture_blocks, picture_parts, picture_count, picture_bias, picture_clamp, picture_previous, picture_taps,
                           picture_image, batch, picture_side);
        }
        return;
    }
#endif
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float shared_demod[CHANNELS];
#if BINOMIAL
    __shared__ __align__(16) float shared_bias[CHANNELS];
#else
    __shared__ __align__(16) half_bits shared_bias[CHANNELS];
#endif
    __shared__ __align__(16) half_bits shared_style[CHANNELS];
    __shared__ float shared_noise[NOISE_BUFFERS][NOISE_COUNT];
    unsigned char* const pool = unaligned + (1024 - (shared_address(unaligned) & 1023)) % 1024;
    const int tid = threadIdx.x, own_lane = tid & 31, own_warp_m = tid / 32 % WARPS_M, own_warp_n = tid / 32 / WARPS_M;
    const int sample = blockIdx.z / SPLIT_K, slice = blockIdx.z % SPLIT_K;
    const int side_in = side / 2, column_tiles = (side_in + COLUMNS - 1) / COLUMNS;
    const int x0 = static_cast<int>(blockIdx.x) % column_tiles * COLUMNS;
    const int first_row = static_cast<int>(blockIdx.x) / column_tiles * SEGMENT, rows = min(SEGMENT, side_in - first_row);
    const int row_tiles = (rows + HALO_LOW + HALO_HIGH + ROWS - 1) / ROWS;
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
    TileLoop loop = {shared_address(pool), shared_address(pool) + (WEIGHTS_IN_SMEM ? column_tile.steps * WEIGHT_SPACE : 0),
                 0, 0, row_tiles, first_row, ROWS, 0, 0};
    unsigned char* const t = pool + (loop.stages - loop.smem_weights) + STAGES * STAGE_NBYTES;
    loop.begin(column_tile);

    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool there = channel < cout;
        shared_demod[i] = !there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * (GAIN_BEFORE * FILTER_SCALE);
        const float own_bias = there && bias ? bias[channel] * GAIN_BEFORE : 0.0f;
#if BINOMIAL
        shared_bias[i] = own_bias * 0.015625f;
#else
        shared_bias[i] = to_half(own_bias);
#endif
#if MOMENTS
        shared_style[i] = to_half(there && strengths ? strengths[channel] : 0.0f);  // of the noise: there is no style
#else
        shared_style[i] = to_half(!there ? 0.0f : next_style ? next_style[sample * style_stride + channel] : 1.0f);
#endif
    }
    // A row tile's first row of t lets this row of outputs be finished; the first row tile's outputs begin TAPS - 1 rows later.
    auto first_output = [&](int row_tile) { return 2 * (first_row - HALO_LOW + row_tile * ROWS) + LEFT - (TAPS - 1); };
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * GAIN_BEFORE, noise_layer);
    auto noise_of = [&](int row_tile, int i) {
        const unsigned place = i * THREADS + opaque(tid);
        const int row = first_output(row_tile) + static_cast<int>(place / (2 * COLUMNS)), column = 2 * x0 + static_cast<int>(place % (2 * COLUMNS));
        if (place >= NOISE_COUNT || row < 2 * first_row || row >= 2 * (first_row + rows) || column >= side) return 0.0f;
        return layer_noise.fetch(row * side + column);
    };
    auto keep_noise = [&](int row_tile, const float (&values)[NOISES]) {
#pragma unroll
        for (int i = 0; i < NOISES; ++i) {
            if (i * THREADS + tid < NOISE_COUNT) shared_noise[row_tile % NOISE_BUFFERS][i * THREADS + tid] = values[i] * layer_noise.strength;
        }
    };
    float noises[NOISES];
#pragma unroll
    for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(0, i);
    keep_noise(0, noises);

    int pixels[MF];  // in the patch, of the position whose row this lane addresses
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const int position = min((own_warp_m * MF + m) * 16 + (own_lane & 15), POSITIONS - 1);
        pixels[m] = (position / M_COLUMNS + 1) * PITCH + position % M_COLUMNS + 1;
    }
    // A column's last rows, filtered along the row, are kept from row tile to row tile.
#if CARRIED_WORDS
    unsigned filtered[TAPS][2][WORDS] = {};
#endif
    uint4* const carried = reinterpret_cast<uint4*>(t + 8 * POSITIONS * CHANNELS) + tid;
#if MOMENTS
    unsigned char* const partials_at = ROW_TILES > 1 ? t + 8 * POSITIONS * CHANNELS + JOBS * TAPS * THREADS * 16 : pool;
#endif

#if WGMMA
    const int product_warp_n = WARPS_N == 1 ? 0 : warp_uniform(own_warp_n);
#else
    const int product_warp_n = own_warp_n;
#endif
    for (int row_tile = 0; row_tile < (ROW_TILES == 1 ? 1 : row_tiles); ++row_tile) {
        float sum[4][MF][NF * 4];
#pragma unroll
        for (int phase = 0; phase < 4; ++phase) {
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int i = 0; i < NF * 4; ++i) sum[phase][m][i] = 0.0f;
            }
        }
        for (int step = 0; step < column_tile.steps; ++step) {
            const unsigned stage = loop.next_stage(column_tile, row_tile == 0 && step == 0);
            if (ROW_TILES > 1 && step == 0) {
#pragma unroll
                for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(row_tile + 1, i);
            }
            accumulate(sum, pixels, stage, WEIGHTS_IN_SMEM ? loop.weights_of_step(step) : stage + PATCH_NBYTES, product_warp_n, own_lane);
            if (ROW_TILES > 1 && step == 0) keep_noise(row_tile + 1, noises);
            loop.leave_stage();
        }
        loop.end_steps(column_tile);
#if SPLIT_K > 1
        if (!reduce_slices<16 * MF * NF>(&sum[0][0][0], workspace, counters, (sample * grid_rows + blockIdx.y) * grid_columns + blockIdx.x, slice)) return;
#endif

        // t * demod into shared memory: of unit variance, more or less, so 16 bits hold it.
        {
            const int lane = opaque(own_lane), warp_m = opaque(own_warp_m), warp_n = opaque(own_warp_n);
#pragma unroll
            for (int m = 0; m < MF; ++m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
                    if (position >= POSITIONS) continue;
                    const int row = position / M_COLUMNS * 2, column = position % M_COLUMNS * 2;
                    const unsigned corner = shared_address(t) + t_offset(row, column) + t_group(warp_n * NF, column) + (lane & 3) * 4;
#pragma unroll
                    for (int n = 0; n < NF; ++n) {
                        const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
                        const float2 d = *reinterpret_cast<const float2*>(&shared_demod[local]);
#if BINOMIAL
                        const float2 b = *reinterpret_cast<const float2*>(&shared_bias[local]);
#else
                        const float2 b = make_float2(0.0f, 0.0f);
#endif
                        const unsigned place = corner ^ n * 16;
#pragma unroll
                        for (int phase = 0; phase < 4; ++phase) {
                            store_shared(place + t_offset(phase / 2, phase % 2),
                                         to_half2(sum[phase][m][n * 4 + half * 2] * d.x + b.x, sum[phase][m][n * 4 + half * 2 + 1] * d.y + b.y));
                        }
                    }
                }
            }
        }
        __syncthreads();

#if !BINOMIAL
        // The filter, along the row first, then down the column. taps[TAPS - 1 - p] is f[p]: convolution turns it round.
        unsigned f[TAPS];
#pragma unroll
        for (int p = 0; p < TAPS; ++p) f[p] = to_half2(taps[TAPS - 1 - p], taps[TAPS - 1 - p]);
#if ODD_BORDER
        const unsigned first_tap = multiply_add2(f[0], MINUS_ONES, f[1]), last_tap = multiply_add2(f[3], MINUS_ONES, f[2]);
        auto tap_at = [&](int p, int output) {  // f[p], as it is for an output's row or column
            return p == 1 && output == 0 ? first_tap : p == 2 && output == side - 1 ? last_tap : f[p];
        };
#else
        auto tap_at = [&](int p, int) { return f[p]; };
#endif
#endif
        const unsigned bound = to_half2(clamp, clamp);
#if PAIRED
        const int output = first_output(row_tile), begin = 2 * first_row - output, end = 2 * (first_row + rows) - output;
#pragma unroll
        for (int job = 0; job < JOBS; ++job) {
            const unsigned index = opaque(tid) + job * THREADS;
            const unsigned vector = index % (GROUPS * 4 / WORDS), pair = index / (GROUPS * 4 / WORDS) % COLUMNS, part = index / PAIR_JOBS;
            const int group = vector / (4 / WORDS), half_group = vector % (4 / WORDS) * 8, channel = n0 + vector * (2 * WORDS);
            if (index >= COLUMN_JOBS || channel >= cout || 2 * (x0 + pair) >= side) continue;
            unsigned style_of[WORDS];
#if !BINOMIAL
            unsigned bias_of[WORDS];
            load_words(bias_of, &shared_bias[channel - n0]);
#endif
            load_words(style_of, &shared_style[channel - n0]);
            // A part's outputs, and the first row of t that they need.
            const int part_begin = begin + static_cast<int>(part * PART_ROWS), part_end = PARTS == 1 ? end : min(end, part_begin + PART_ROWS);
            const int first = ROW_TILES > 1 ? 0 : part_begin - (TAPS - 1);
            // Outputs 2 pair and the next one take of t the columns 2 pair + 1 .. 2 pair + 5: of three pairs.
            const unsigned char* from[3];
#pragma unroll
            for (int k = 0; k < 3; ++k) from[k] = t + t_offset(first, 2 * (pair + k)) + t_group(group, 2 * (pair + k)) + half_group;
            const int row_numbers = side * cout;
            const long long corner = (static_cast<long long>(sample) * side * side + (output + first) * side + 2 * (x0 + static_cast<int>(pair))) * cout + channel;
            T* to = (HAS_Y ? y : y_raw) + corner;
#if !CARRIED_WORDS
            // The last rows, filtered along the row; with BINOMIAL from 1 on: the last one, its sums with those before once and twice.
            unsigned filtered[TAPS][2][WORDS] = {};
#endif
#if ROW_TILES > 1 && !CARRIED_WORDS
#pragma unroll
            for (int p = 1; p < TAPS; ++p) {
                const uint4 kept = row_tile > 0 ? carried[(job * TAPS + p) * THREADS] : make_uint4(0u, 0u, 0u, 0u);
                filtered[p][0][0] = kept.x, filtered[p][0][1] = kept.y, filtered[p][1][0] = kept.z, filtered[p][1][1] = kept.w;
            }
#endif
#pragma unroll 4
            for (int i = 0; i < (ROW_TILES > 1 ? 2 * ROWS : PART_ROWS + TAPS - 1); ++i, to += row_numbers) {
                const int row = first + i;
                if (ROW_TILES == 1 && row >= part_end) break;
#if BINOMIAL
                unsigned t_words[TAPS + 1][WORDS], whole[2][WORDS];
#pragma unroll
                for (int p = 0; p <= TAPS; ++p) load_words(t_words[p], from[(p + 1) / 2] + t_offset(i, 1 - (p & 1)));
#pragma unroll
                for (int column = 0; column < 2; ++column) {
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        const unsigned once = add_thrice2(add2(t_words[column][w], t_words[column + 3][w]), add2(t_words[column + 1][w], t_words[column + 2][w]));
                        const unsigned twice = add2(once, filtered[1][column][w]), thrice = add2(twice, filtered[2][column][w]);
                        whole[column][w] = add2(thrice, filtered[3][column][w]);
                        filtered[1][column][w] = once, filtered[2][column][w] = twice, filtered[3][column][w] = thrice;
                    }
                }
#else
#pragma unroll
                for (int p = 0; p < TAPS - 1; ++p) {
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) filtered[p][0][w] = filtered[p + 1][0][w], filtered[p][1][w] = filtered[p + 1][1][w];
                }
#pragma unroll
                for (int p = 0; p <= TAPS; ++p) {
                    unsigned words[WORDS];
                    load_words(words, from[(p + 1) / 2] + t_offset(i, 1 - (p & 1)));
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        if (p < TAPS) filtered[TAPS - 1][0][w] = multiply_add2(f[p], words[w], p == 0 ? 0u : filtered[TAPS - 1][0][w]);
                        if (p > 0) filtered[TAPS - 1][1][w] = multiply_add2(f[p - 1], words[w], p == 1 ? 0u : filtered[TAPS - 1][1][w]);
                    }
                }
#endif
                if (row < part_begin || row >= part_end) continue;
                const float2 values = *reinterpret_cast<const float2*>(&shared_noise[row_tile % NOISE_BUFFERS][row * 2 * COLUMNS + 2 * pair]);
#pragma unroll
                for (int side_by_side = 0; side_by_side < 2; ++side_by_side) {
                    const float value = side_by_side == 0 ? values.x : values.y;
                    const unsigned shift = to_half2(value, value);
                    unsigned out[WORDS], styled[WORDS];
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
#if BINOMIAL
                        const unsigned z = add2(whole[side_by_side][w], shift);
#else
                        unsigned z = multiply_add2(bias_of[w], ONES, shift);
#pragma unroll
                        for (int p = 0; p < TAPS; ++p) z = multiply_add2(f[p], filtered[p][side_by_side][w], z);
#endif
                        out[w] = activated_word(z, GAIN_AFTER, bound, clamp);
                        styled[w] = multiply_add2(out[w], style_of[w], 0u);
                    }
                    store_words(to + side_by_side * cout, HAS_Y ? styled : out);
#if HAS_Y && HAS_RAW
                    store_words(to + (y_raw - y) + side_by_side * cout, out);
#endif
                }
            }
#if ROW_TILES > 1 && !CARRIED_WORDS
#pragma unroll
            for (int p = 1; p < TAPS; ++p) {
                carried[(job * TAPS + p) * THREADS] = make_uint4(filtered[p][0][0], filtered[p][0][1], filtered[p][1][0], filtered[p][1][1]);
            }
#endif
        }
#else
#if MOMENTS
        Moments partials(partials_at);
        if (ROW_TILES > 1 && row_tile > 0) partials.set_pivot(partials.pivots(partials.tid / 32) + partials.tid % GROUPS * 8);
#endif
#pragma unroll
        for (int job = 0; job < JOBS; ++job) {
            const unsigned index = opaque(tid) + job * THREADS;
            const int group = index % GROUPS, column = index / GROUPS, channel = n0 + group * 8;
            const bool is_idle = index >= COLUMN_JOBS || channel >= cout || 2 * x0 + column >= side;
#if MOMENTS
            const unsigned busy = __ballot_sync(0xffffffffu, !is_idle);
#endif
            if (is_idle) continue;
            const uint4 biases = *reinterpret_cast<const uint4*>(&shared_bias[group * 8]);
            const unsigned bias_of[4] = {biases.x, biases.y, biases.z, biases.w};
            const uint4 styles = *reinterpret_cast<const uint4*>(&shared_style[group * 8]);
            const unsigned style_of[4] = {styles.x, styles.y, styles.z, styles.w};
            const int output = first_output(row_tile), row_numbers = side * cout;
            const long long corner = (static_cast<long long>(sample) * side * side + output * side + 2 * x0 + column) * cout + channel;
            T* const to = y + corner;
            T* const to_raw = y_raw + corner;
            const unsigned char* from[TAPS];
#pragma unroll
            for (int p = 0; p < TAPS; ++p) {
                const int at = column + 2 * HALO_LOW - LEFT + p;
                from[p] = t + t_offset(0, at) + t_group(group, at);
            }
            const int begin = 2 * first_row - output, end = 2 * (first_row + rows) - output;
            unsigned filtered[TAPS][4];
#pragma unroll
            for (int p = 1; p < TAPS; ++p) {
                const uint4 kept = ROW_TILES > 1 && row_tile > 0 ? carried[(job * TAPS + p) * THREADS] : make_uint4(0u, 0u, 0u, 0u);
                filtered[p][0] = kept.x, filtered[p][1] = kept.y, filtered[p][2] = kept.z, filtered[p][3] = kept.w;
            }
#pragma unroll(TAPS <= 4 ? 4 : 1)
            for (int row = 0; row < 2 * ROWS; ++row) {
#pragma unroll
                for (int p = 0; p < TAPS - 1; ++p) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) filtered[p][i] = filtered[p + 1][i];
                }
#pragma unroll
                for (int p = 0; p < TAPS; ++p) {
                    const uint4 values = *reinterpret_cast<const uint4*>(from[p] + t_offset(row, 0));
                    const unsigned words[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        filtered[TAPS - 1][i] = multiply_add2(tap_at(p, 2 * x0 + column), words[i], p == 0 ? 0u : filtered[TAPS - 1][i]);
                    }
                }
                if (row >= begin && row < end) {
                    const float value = shared_noise[row_tile % NOISE_BUFFERS][row * 2 * COLUMNS + column];
                    const unsigned shift = to_half2(value, value);
                    unsigned out[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
#if MOMENTS
                        unsigned z = multiply_add2(style_of[i], shift, multiply_add2(bias_of[i], bias_share(output + row, 2 * x0 + column, side), 0u));
#else
                        unsigned z = multiply_add2(bias_of[i], ONES, shift);
#endif
#pragma unroll
                        for (int p = 0; p < TAPS; ++p) z = multiply_add2(tap_at(p, output + row), filtered[p][i], z);
                        out[i] = activated_word(z, GAIN_AFTER, bound, clamp);
                    }
                    if (HAS_RAW) *reinterpret_cast<uint4*>(to_raw + row * row_numbers) = make_uint4(out[0], out[1], out[2], out[3]);
#if MOMENTS
                    if (row == begin && job == 0) {  // the block's first row of outputs: the pivot is the warp's first pixel in it
                        unsigned one[4];
#pragma unroll
                        for (int i = 0; i < 4; ++i) one[i] = __shfl_sync(busy, out[i], index % GROUPS);
                        partials.set_pivot(one);
                        if (index % 32 < GROUPS) *reinterpret_cast<uint4*>(partials.pivots(index / 32) + group * 8) = make_uint4(one[0], one[1], one[2], one[3]);
                    }
                    partials.add(out);
#else
#pragma unroll
                    for (int i = 0; i < 4; ++i) out[i] = multiply_add2(out[i], style_of[i], 0u);
#endif
                    if (HAS_Y) *reinterpret_cast<uint4*>(to + row * row_numbers) = make_uint4(out[0], out[1], out[2], out[3]);
                }
            }
#if ROW_TILES > 1
#pragma unroll
            for (int p = 1; p < TAPS; ++p) {
                carried[(job * TAPS + p) * THREADS] = make_uint4(filtered[p][0], filtered[p][1], filtered[p][2], filtered[p][3]);
            }
#endif
        }
#endif
#if MOMENTS
        partials.end_row_tile(row_tile == 0);
#endif
    }
#if MOMENTS
    // Counted again where threads have most registers and sums fill them: then nothing of it is kept from the beginning.
    const int block = opaque(blockIdx.x), across = (opaque(side) / 2 + COLUMNS - 1) / COLUMNS;
    const int columns = min(2 * COLUMNS, side - 2 * (MIN_BLOCKS > 1 ? x0 : block % across * COLUMNS));
    const int height = 2 * (MIN_BLOCKS > 1 ? rows : min(SEGMENT, side / 2 - block / across * SEGMENT));
    Moments(partials_at).store(moments + (static_cast<long long>(sample) * gridDim.x + blockIdx.x) * cout + n0, min(CHANNELS, cout - n0), CHANNELS,
               [&](int warp) {
                   int pixels = 0;
#pragma unroll
                   for (int job = 0; job < JOBS; ++job) {
                       pixels += height * max(0, min(columns - (warp * 32 + job * THREADS) / GROUPS, 32 / GROUPS));
                   }
                   return pixels;
               });
#endif
}
