// The up-convolution as one kernel: stride-2 transposed 3 x 3 convolution on tensor cores, the FIR filter from shared
// memory, then demodulation, noise, bias, activation, gain, clamp and the style of the convolution that reads the result.
// The formula is that of gpu_backend/ops/modulated_up_conv.py.
//
// The transposed picture t has four values for each position (m, n) of the input, one a phase:
//     t[2m, 2n]     = W00 x[m, n] + W20 x[m-1, n] + W02 x[m, n-1] + W22 x[m-1, n-1]
//     t[2m, 2n+1]   = W01 x[m, n] + W21 x[m-1, n]
//     t[2m+1, 2n]   = W10 x[m, n] + W12 x[m, n-1]
//     t[2m+1, 2n+1] = W11 x[m, n]
// so nine products per position instead of the thirty-six of the composed filter. A block goes down a column tile in row tiles of ROWS
// rows of positions, up to ROW_TILES of them, and filters each row tile where it lies: t never leaves the multiprocessor. The column tile
// is wider than its COLUMNS by the halo of the filter; downwards the filter carries its last rows from row tile to row tile.
// Outside the picture x is zero, and so is t. With ODD_BORDER the filter meets t's first and last numbers there instead,
// their signs turned, as StyleGAN1's blur wants it (gpu_backend/ops/adain_up_conv.py): only in the first and last outputs.
//
// Macros: as in modulated_conv.cu (HALF too), without KERNEL, HAS_RGB, HAS_SKIP and FP8_X; and
//     FP8_Y           with HALF, HAS_Y and not HAS_RAW: see parts/e4m3.cuh
//     TAPS            length of the FIR filter
//     ODD_BORDER      see above
//     HAS_Y, HAS_RAW  which of y and y_raw are stored
//     BINOMIAL        with TAPS 4: the filter is 1 3 3 1 over 4 per axis, computed by additions alone as in streaming_up_conv.cu: its scale is
//                     in the demodulation, and a 64th of the bias in every number of t
//     ADDS_PICTURE    blocks beyond grid_columns or grid_rows add up the picture of the toRGB before, which nothing here reads
//                     (parts/picture_beside.cuh), with IMG_CHANNELS
//     NORMALISES      as in modulated_conv.cu
//     BLURS_BIAS      with HAS_MOMENTS: the bias was added before the blur, which leaves three quarters of it at a border
//
// Shared memory from the first multiple of 1024 bytes on (ConvGeometry.dynamic_nbytes in conv_tile.py):
//     weights     all steps x WEIGHT_SPACE                     with WEIGHTS_IN_SMEM
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights, if they do not stay
//     ...
//     stage STAGES - 1
//     t           T_NBYTES: four phases of fp16 or fp32
//     carried     JOBS x TAPS x THREADS x 16 bytes: filtered rows from row tile to row tile, unless registers hold them
//     moments     with HAS_MOMENTS and ROW_TILES > 1; with one row tile they reuse the stages
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

// #if remains where the list of parameters and what they initialise differ, and for one type. All else is `if constexpr`, in the body of the
// kernel too: moved into functions of their own, the two filters compile to other address arithmetic.
enum : bool {
    // The usual filter is computed on two columns of outputs at a time, which share three of five columns of t. Without row tiles after
    // the first, rows are dealt among as many threads as there are. Other filters are computed column by column.
    PAIRED = TAPS == 4 && !ODD_BORDER && !HAS_MOMENTS,
};
enum : int {
    THREADS = 32 * WARPS_M * WARPS_N,
    KERNEL_TAPS = 9,
    // z[u] = sum_p f[p] t[u - LEFT + p] needs positions from HALO_LOW before to HALO_HIGH behind.
    LEFT = 1 + (TAPS + 1) / 2 - 2,
    HALO_LOW = (LEFT + 1) / 2,
    HALO_HIGH = (TAPS - LEFT) / 2,
    M_COLUMNS = COLUMNS + HALO_LOW + HALO_HIGH,         // columns of positions, halo included
    T_COLUMNS = 2 * M_COLUMNS,                          // of t
    SEGMENT = ROW_TILES * ROWS - HALO_LOW - HALO_HIGH,  // rows of positions whose outputs a block makes
    POSITIONS = ROWS * M_COLUMNS,                       // of a row tile
    T_NBYTES = 4 * POSITIONS * CHANNELS * ELEMENT_NBYTES,
    BEFORE = HALO_LOW + 1,
    PATCH_ROWS = ROWS + 1,
    PATCH_COLUMNS = M_COLUMNS + 1,
    PITCH = (PATCH_COLUMNS + 7) / 8 * 8,
    // What a warp multiplies: MF fragments of sixteen positions by NF fragments of eight channels.
    FRAGMENTS = (POSITIONS + 15) / 16,
    MF = (FRAGMENTS + WARPS_M - 1) / WARPS_M,
    NF = CHANNELS / 8 / WARPS_N,
    SUMS = 16 * MF * NF,  // of a thread: four phases
    WARP_CHANNELS = CHANNELS / WARPS_N,
    GROUPS = CHANNELS / CHUNK,  // of 16 bytes of output channels
    // Registers of a thread: a second set of positions' where some are left, three neighbours' at a time where they do not suffice.
    TURNS = BF16X3 || MIN_BLOCKS > 1 || THREADS > 256 ? 1 : 2,
    SHORT_OF_REGISTERS = !BF16X3 && USE_WGMMA && SUMS + 16 + 32 > 65536 / (THREADS * MIN_BLOCKS),
    // Jobs of the filter. A thread takes WORDS words of two channels of each of its columns; PARTS threads share the rows of a column.
    WORDS = !PAIRED || (ROW_TILES == 1 && THREADS < 4 * COLUMNS * GROUPS) ? 4 : 2,
    PART_JOBS = PAIRED ? COLUMNS * GROUPS * 4 / WORDS : 2 * COLUMNS * GROUPS,
    IS_DEALT = ROW_TILES == 1 && PART_JOBS < THREADS && (!HAS_MOMENTS || PART_JOBS % 32 == 0 || 32 % PART_JOBS == 0),
    PARTS = !IS_DEALT ? 1 : THREADS / PART_JOBS < SEGMENT ? THREADS / PART_JOBS : SEGMENT,
    PART_ROWS = (2 * SEGMENT + PARTS - 1) / PARTS,  // of outputs
    COLUMN_JOBS = PART_JOBS * PARTS,
    JOBS = (COLUMN_JOBS + THREADS - 1) / THREADS,  // of a thread
    // Filtered rows that the next row tile needs stay in registers where the sums leave some, otherwise in shared memory.
    CARRIED_IN_REGISTERS = PAIRED && ROW_TILES > 1 && JOBS == 1 && SUMS <= 64,
    CARRIED_NBYTES = ROW_TILES > 1 && !CARRIED_IN_REGISTERS ? JOBS * TAPS * THREADS * 16 : 0,
    NOISE_COUNT = 4 * ROWS * COLUMNS,                        // of a row tile
    NOISE_BUFFERS = ROW_TILES == 1 ? 1 : DECOUPLED ? 3 : 2,  // decoupled, a warp may read one while another writes two further
    NOISES = (NOISE_COUNT + THREADS - 1) / THREADS,          // of a thread
};
static_assert(!ODD_BORDER || TAPS == 4, "ODD_BORDER goes with a filter of 4 taps");
static_assert(!BINOMIAL || PAIRED, "BINOMIAL is for paired columns");
static_assert(!NORMALISES || (HAS_MOMENTS && ROW_TILES == 1 && CHANNELS <= THREADS), "a block normalises the picture that it has");
static_assert(!FP8_X && (!FP8_Y || (HALF && HAS_Y && !HAS_RAW && !HAS_MOMENTS)), "y alone is e4m3, of numbers in fp16");
#include "parts/tile_loop.cuh"
#include "parts/up_conv_products.cuh"
#include "parts/picture_beside.cuh"
#include "parts/moments.cuh"

static_assert(1024 + STAGES * STAGE_NBYTES + T_NBYTES + CARRIED_NBYTES <= LOOP_NBYTES,
              "stages, t and carried rows lie in the launch's shared memory");

#if BINOMIAL
typedef float Bias;  // added to the fp32 sums
#else
typedef T Bias;
#endif

// What a block computes, and its shared memory.
struct Block {
    int tid, sample, side, cout;  // side, cout: of the output
    int n0;                       // first output channel
    int x0, first_row, rows;      // first column, first row and number of rows of the positions whose outputs it computes
    float* demod;                 // in shared memory, CHANNELS each
    Bias* bias;
    T* style;                     // with HAS_MOMENTS, strengths of the noise: there is no style then
    float (*noise)[NOISE_COUNT];  // of NOISE_BUFFERS row tiles
    unsigned char* t;
};

// ---- Constants of the block -------------------------------------------------------------------------------------------------------

// Writes what the epilogue needs of each output channel to shared memory. The caller synchronises.
__device__ __forceinline__ void load_constants(
    const Block& block, const float* demod, int demod_stride, const float* bias, const float* next_style, int style_stride,
    const float* strengths, float gain) {
    for (int i = block.tid; i < CHANNELS; i += THREADS) {
        const int channel = block.n0 + i;
        const bool there = channel < block.cout;
        // The scale of a binomial filter, of both axes, is in the demodulation, and a 64th of the bias in every number of t.
        block.demod[i] = !there ? 0.0f : (demod ? demod[block.sample * demod_stride + channel] : 1.0f) * (gain_before(gain) * (BINOMIAL ? 0.0625f : 1.0f));
        const float own_bias = there && bias ? bias[channel] * gain_before(gain) : 0.0f;
        if constexpr (BINOMIAL) {
            block.bias[i] = own_bias * 0.015625f;
        } else {
            block.bias[i] = to_element(own_bias);
        }
        if constexpr (HAS_MOMENTS) {
            block.style[i] = to_element(there && strengths ? strengths[channel] : 0.0f);
        } else {
            block.style[i] = to_element(!there ? 0.0f : (next_style ? next_style[block.sample * style_stride + channel] : 1.0f) * FP8_Y_UNIT);
        }
    }
}

// Writes a thread's numbers of the noise of a row tile's outputs to shared memory. The caller synchronises.
__device__ __forceinline__ void store_noise(const float (&values)[NOISES], const LayerNoise& layer_noise, const Block& block, int row_tile) {
#pragma unroll
    for (int i = 0; i < NOISES; ++i) {
        if (i * THREADS + block.tid < NOISE_COUNT) block.noise[row_tile % NOISE_BUFFERS][i * THREADS + block.tid] = values[i] * layer_noise.strength;
    }
}

// ---- t in shared memory -----------------------------------------------------------------------------------------------------------

// Offset of t at a row and a column of the row tile, without the group of channels. For paired columns, even and odd ones are stored
// separately, so that neighbouring threads read neighbours.
__device__ __forceinline__ int t_offset(int row, int column) {
    if constexpr (PAIRED) return ((row * 2 + (column & 1)) * M_COLUMNS + (column >> 1)) * GROUPS * 16;
    return (row * T_COLUMNS + column) * GROUPS * 16;
}

// Offset of a group of 16 bytes of channels, swizzled against bank conflicts.
__device__ __forceinline__ int t_group(int group, int column) {
    if constexpr (PAIRED) return (group ^ ((column >> 1) / (GROUPS < 8 ? 8 / GROUPS : 1) & (GROUPS - 1))) * 16;
    return (group ^ ((column >> 1) & (GROUPS - 1))) * 16;
}

// Writes sums times demodulation to t, of about unit variance so that fp16 holds them. The caller synchronises.
__device__ __forceinline__ void store_t(const Sums& sum, const Block& block, int own_lane, int own_warp_m, int own_warp_n) {
    const int lane = opaque(own_lane), warp_m = opaque(own_warp_m), warp_n = opaque(own_warp_n);
    const int first_group = HALF ? warp_n * NF : warp_n * NF * 2 + (lane >> 1 & 1);  // of the lane's channels
#pragma unroll
    for (int m = 0; m < MF; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned position = (warp_m * MF + m) * 16 + half * 8 + (lane >> 2);
            if (position >= POSITIONS) continue;
            const int row = position / M_COLUMNS * 2, column = position % M_COLUMNS * 2;
            const unsigned corner =
                shared_address(block.t) + t_offset(row, column) + t_group(first_group, column) + (lane & (4 / PAIR_WORDS - 1)) * (4 * PAIR_WORDS);
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const int local = warp_n * WARP_CHANNELS + n * 8 + (lane & 3) * 2;
                const float2 d = *reinterpret_cast<const float2*>(&block.demod[local]);
                float2 b = make_float2(0.0f, 0.0f);
                if constexpr (BINOMIAL) b = *reinterpret_cast<const float2*>(&block.bias[local]);
                const unsigned place = corner ^ n * (8 * ELEMENT_NBYTES);
#pragma unroll
                for (int phase = 0; phase < 4; ++phase) {
                    store_pair(place + t_offset(phase / 2, phase % 2),
                               pair_of(sum[phase][m][n * 4 + half * 2] * d.x + b.x, sum[phase][m][n * 4 + half * 2 + 1] * d.y + b.y));
                }
            }
        }
    }
}

// ---- What the filter reads and writes ---------------------------------------------------------------------------------------------

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

// The numbers of two or four words of fp16, as e4m3.
__device__ __forceinline__ void store_e4m3(void* to, const unsigned (&words)[2]) { *static_cast<unsigned*>(to) = to_e4m3x4(words[0], words[1]); }
__device__ __forceinline__ void store_e4m3(void* to, const unsigned (&words)[4]) {
    *static_cast<uint2*>(to) = make_uint2(to_e4m3x4(words[0], words[1]), to_e4m3x4(words[2], words[3]));
}

// With HAS_MOMENTS: what is left of the bias at an output.
__device__ __forceinline__ unsigned bias_share(int row, int column, int side) {
    if constexpr (BLURS_BIAS) {
        const bool is_row = row == 0 || row == side - 1, is_column = column == 0 || column == side - 1;
        return is_row && is_column ? 0x38803880u : is_row || is_column ? 0x3A003A00u : WORD_ONE;
    }
    return WORD_ONE;
}

// The row tile's Moments, or what stands in for them where the kernel computes none.
struct NoMoments {
    int tid;
    __device__ __forceinline__ explicit NoMoments(void*) : tid(0) {}
    __device__ __forceinline__ half_bits* pivots(int) const { return nullptr; }
    __device__ __forceinline__ void set_pivot(const unsigned (&)[4]) {}
    __device__ __forceinline__ void set_pivot(const half_bits*) {}
    __device__ __forceinline__ void add(const unsigned (&)[4]) {}
    __device__ __forceinline__ void end_row_tile(bool) {}
};
template <bool ARE_COMPUTED>
struct PartialsOf {
    typedef NoMoments type;
};
template <>
struct PartialsOf<true> {
    typedef Moments type;
};

// Writes mean and M2 of the block's outputs.
__device__ __forceinline__ void store_moments(float2* to, unsigned char* partials_at, const Block& block) {
    // Sizes are computed again where threads have most registers and sums fill them: then nothing of it is kept from the beginning.
    const int first = opaque(static_cast<int>(blockIdx.x)), across = (opaque(block.side) / 2 + COLUMNS - 1) / COLUMNS;
    const int columns = min(2 * COLUMNS, block.side - 2 * (MIN_BLOCKS > 1 ? block.x0 : first % across * COLUMNS));
    const int height = 2 * (MIN_BLOCKS > 1 ? block.rows : min(SEGMENT, block.side / 2 - first / across * SEGMENT));
    auto pixels_of = [&](int warp) {
        int pixels = 0;
        if constexpr (PARTS == 1) {
#pragma unroll
            for (int job = 0; job < JOBS; ++job) pixels += height * max(0, min(columns - (warp * 32 + job * THREADS) / GROUPS, 32 / GROUPS));
        } else {  // a warp has columns of one part, or whole parts
            constexpr int JOBS_OF_ONE = PART_JOBS < 32 ? PART_JOBS : 32;
#pragma unroll
            for (int first = 0; first < 32; first += JOBS_OF_ONE) {
                const int part = (warp * 32 + first) / PART_JOBS, column = (warp * 32 + first) % PART_JOBS / GROUPS;
                const int rows = max(0, min(height - part * PART_ROWS, static_cast<int>(PART_ROWS)));
                pixels += rows * max(0, min(columns - column, JOBS_OF_ONE / GROUPS));
            }
        }
        return pixels;
    };
    Moments(partials_at).store(to, min(CHANNELS, block.cout - block.n0), CHANNELS, pixels_of);
}

// ---- The kernel -------------------------------------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) modulated_up_conv(
    LAYER_PARAMETERS,
#if !BINOMIAL
    const float* __restrict__ taps,
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
    // Parameters that this variant does not take are named in branches that are not compiled.
#if BINOMIAL
    const float* const taps = nullptr;
#endif
#if SPLIT_K == 1
    float* const workspace = nullptr;
    unsigned* const counters = nullptr;
#endif
#if !HAS_MOMENTS
    const float* const strengths = nullptr;
    float2* const moments = nullptr;
#endif
#if !NORMALISES
    const int channels = 0;
    const float epsilon = 0.0f;
#endif
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float shared_demod[CHANNELS];
    __shared__ __align__(16) Bias shared_bias[CHANNELS];
    __shared__ __align__(16) T shared_style[CHANNELS];
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
    unsigned char* const partials_at = ROW_TILES > 1 ? t + T_NBYTES + CARRIED_NBYTES : pool;
    const Block block = {tid, sample, side, cout, n0, x0, first_row, rows, shared_demod, shared_bias, shared_style, shared_noise, t};
    loop.begin(column_tile);

    load_constants(block, demod, demod_stride, bias, next_style, style_stride, strengths, gain);
    float own_scale = 0.0f, own_shift = 0.0f;  // of the thread's channel
    if constexpr (NORMALISES) {
        if (tid < CHANNELS && n0 + tid < channels) {
            const float* const own = next_style + sample * style_stride + n0 + tid;
            own_scale = own[0], own_shift = own[channels];
        }
    }
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    // The row of outputs that the first row of t of a row tile completes. In the first row tile, outputs begin TAPS - 1 rows later.
    auto first_output = [&](int row_tile) { return 2 * (first_row - HALO_LOW + row_tile * ROWS) + LEFT - (TAPS - 1); };
    auto noise_of = [&](int row_tile, int i) {  // the thread's i-th number of a row tile's noise, without the strength; 0 outside of its outputs
        const unsigned place = i * THREADS + opaque(tid);
        const int row = first_output(row_tile) + static_cast<int>(place / (2 * COLUMNS)), column = 2 * x0 + static_cast<int>(place % (2 * COLUMNS));
        if (place >= NOISE_COUNT || row < 2 * first_row || row >= 2 * (first_row + rows) || column >= side) return 0.0f;
        return layer_noise.fetch(row * side + column);
    };
    float noises[NOISES];
#pragma unroll
    for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(0, i);
    store_noise(noises, layer_noise, block, 0);
    int pixels[MF];
    find_pixels(pixels, own_warp_m, own_lane);
    // Filtered rows that the next row tile needs: in registers, or in shared memory behind t.
    unsigned kept[TAPS][2][WORDS] = {};
    uint4* const carried = reinterpret_cast<uint4*>(t + T_NBYTES) + tid;
    int product_warp_n = own_warp_n;
    if constexpr (USE_WGMMA) product_warp_n = WARPS_N == 1 ? 0 : warp_uniform(own_warp_n);

    for (int row_tile = 0; row_tile < (ROW_TILES == 1 ? 1 : row_tiles); ++row_tile) {
        Sums sum;
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
            if (ROW_TILES > 1 && step == 0) {  // of the next row tile: fetched here, stored after the products, so that nothing waits for it
#pragma unroll
                for (int i = 0; i < NOISES; ++i) noises[i] = noise_of(row_tile + 1, i);
            }
            accumulate(sum, pixels, stage, WEIGHTS_IN_SMEM ? loop.weights_of_step(step) : stage + PATCH_NBYTES, product_warp_n, own_lane);
            if (ROW_TILES > 1 && step == 0) store_noise(noises, layer_noise, block, row_tile + 1);
            loop.leave_stage();
        }
        loop.end_steps(column_tile);
        if constexpr (SPLIT_K > 1) {
            const int tile = (sample * grid_rows + blockIdx.y) * grid_columns + blockIdx.x;
            if (!reduce_slices<SUMS>(&sum[0][0][0], workspace, counters, tile, slice)) return;
        }
        store_t(sum, block, own_lane, own_warp_m, own_warp_n);
        __syncthreads();

        unsigned f[TAPS];  // the filter's taps, in every number of a word; convolution turns it round
        if constexpr (!BINOMIAL) {
#pragma unroll
            for (int p = 0; p < TAPS; ++p) f[p] = word_of(taps[TAPS - 1 - p]);
        }
        unsigned first_tap = 0u, last_tap = 0u;
        if constexpr (ODD_BORDER) {
            first_tap = word_multiply_add(f[0], WORD_MINUS_ONE, f[1]);
            last_tap = word_multiply_add(f[3], WORD_MINUS_ONE, f[2]);
        }
        auto tap_at = [&](int p, int output) {  // f[p], as it is for an output's row or column
            if constexpr (ODD_BORDER) return p == 1 && output == 0 ? first_tap : p == 2 && output == side - 1 ? last_tap : f[p];
            return f[p];
        };
        const unsigned bound = word_of(clamp);
        if constexpr (PAIRED) {  // two columns of outputs a job
            const int output = first_output(row_tile), begin = 2 * first_row - output, end = 2 * (first_row + rows) - output;
#pragma unroll
            for (int job = 0; job < JOBS; ++job) {
                const unsigned index = opaque(tid) + job * THREADS;
                const unsigned vector = index % (GROUPS * 4 / WORDS), pair = index / (GROUPS * 4 / WORDS) % COLUMNS, part = index / PART_JOBS;
                const int group = vector / (4 / WORDS), half_group = vector % (4 / WORDS) * 8, channel = n0 + vector * (WORD_CHANNELS * WORDS);
                if (index >= COLUMN_JOBS || channel >= cout || 2 * (x0 + pair) >= side) continue;
                unsigned style_of[WORDS], bias_of[WORDS];
                if constexpr (!BINOMIAL) load_words(bias_of, &shared_bias[channel - n0]);
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
                Y* to = (HAS_Y ? y : reinterpret_cast<Y*>(y_raw)) + corner;
                // The last rows, filtered along the row; with BINOMIAL from 1 on: the last one, its sums with those before once and twice.
                unsigned fresh[TAPS][2][WORDS] = {};
                auto& filtered = CARRIED_IN_REGISTERS ? kept : fresh;
                if constexpr (ROW_TILES > 1 && !CARRIED_IN_REGISTERS) {
#pragma unroll
                    for (int p = 1; p < TAPS; ++p) {
                        const uint4 words = row_tile > 0 ? carried[(job * TAPS + p) * THREADS] : make_uint4(0u, 0u, 0u, 0u);
                        filtered[p][0][0] = words.x, filtered[p][0][1] = words.y, filtered[p][1][0] = words.z, filtered[p][1][1] = words.w;
                    }
                }
#pragma unroll 4
                for (int i = 0; i < (ROW_TILES > 1 ? 2 * ROWS : PART_ROWS + TAPS - 1); ++i, to += row_numbers) {
                    const int row = first + i;
                    if (ROW_TILES == 1 && row >= part_end) break;
                    // Row i of t along the row. A binomial filter adds it to the rows before at once, others keep the rows.
                    unsigned whole[2][WORDS];
                    if constexpr (BINOMIAL) {
                        unsigned t_words[TAPS + 1][WORDS];
#pragma unroll
                        for (int p = 0; p <= TAPS; ++p) load_words(t_words[p], from[(p + 1) / 2] + t_offset(i, 1 - (p & 1)));
#pragma unroll
                        for (int column = 0; column < 2; ++column) {
#pragma unroll
                            for (int w = 0; w < WORDS; ++w) {
                                const unsigned outer = word_add(t_words[column][w], t_words[column + 3][w]), inner = word_add(t_words[column + 1][w], t_words[column + 2][w]);
                                const unsigned once = word_add_thrice(outer, inner);
                                const unsigned twice = word_add(once, filtered[1][column][w]), thrice = word_add(twice, filtered[2][column][w]);
                                whole[column][w] = word_add(thrice, filtered[3][column][w]);
                                filtered[1][column][w] = once, filtered[2][column][w] = twice, filtered[3][column][w] = thrice;
                            }
                        }
                    } else {
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
                                if (p < TAPS) filtered[TAPS - 1][0][w] = word_multiply_add(f[p], words[w], p == 0 ? 0u : filtered[TAPS - 1][0][w]);
                                if (p > 0) filtered[TAPS - 1][1][w] = word_multiply_add(f[p - 1], words[w], p == 1 ? 0u : filtered[TAPS - 1][1][w]);
                            }
                        }
                    }
                    if (row < part_begin || row >= part_end) continue;
                    const float2 values = *reinterpret_cast<const float2*>(&shared_noise[row_tile % NOISE_BUFFERS][row * 2 * COLUMNS + 2 * pair]);
#pragma unroll
                    for (int column_of_pair = 0; column_of_pair < 2; ++column_of_pair) {
                        const float value = column_of_pair == 0 ? values.x : values.y;
                        const unsigned shift = word_of(value);
                        unsigned out[WORDS], styled_out[WORDS];
#pragma unroll
                        for (int w = 0; w < WORDS; ++w) {
                            unsigned z;
                            if constexpr (BINOMIAL) {
                                z = word_add(whole[column_of_pair][w], shift);
                            } else {
                                z = word_multiply_add(bias_of[w], WORD_ONE, shift);
#pragma unroll
                                for (int p = 0; p < TAPS; ++p) z = word_multiply_add(f[p], filtered[p][column_of_pair][w], z);
                            }
                            out[w] = activated_word(z, gain_after(gain), bound, clamp);
                            styled_out[w] = styled(out[w], style_of[w]);
                        }
                        if constexpr (FP8_Y) {
                            store_e4m3(to + column_of_pair * cout, styled_out);
                        } else {
                            store_words(to + column_of_pair * cout, HAS_Y ? styled_out : out);
                        }
                        if constexpr (HAS_Y && HAS_RAW) store_words(to + (y_raw - reinterpret_cast<T*>(y)) + column_of_pair * cout, out);
                    }
                }
                if constexpr (ROW_TILES > 1 && !CARRIED_IN_REGISTERS) {
#pragma unroll
                    for (int p = 1; p < TAPS; ++p) {
                        carried[(job * TAPS + p) * THREADS] = make_uint4(filtered[p][0][0], filtered[p][0][1], filtered[p][1][0], filtered[p][1][1]);
                    }
                }
            }
        } else {  // one column of outputs a job, 16 bytes of channels
            PartialsOf<HAS_MOMENTS>::type partials(partials_at);
            if constexpr (HAS_MOMENTS) {
                if (ROW_TILES > 1 && row_tile > 0) partials.set_pivot(partials.pivots(partials.tid / 32) + partials.tid % GROUPS * 8);
            }
#pragma unroll
            for (int job = 0; job < JOBS; ++job) {
                const unsigned index = opaque(tid) + job * THREADS, part = PARTS == 1 ? 0 : index / PART_JOBS;
                const int group = index % GROUPS, column = (PARTS == 1 ? index : index % PART_JOBS) / GROUPS, channel = n0 + group * CHUNK;
                const int output = first_output(row_tile), row_numbers = side * cout;
                // A part's outputs, and the first row of t that they need.
                const int end = 2 * (first_row + rows) - output, begin = 2 * first_row - output + static_cast<int>(part * PART_ROWS);
                const int part_end = PARTS == 1 ? end : min(end, begin + PART_ROWS), first = PARTS == 1 ? 0 : begin - (TAPS - 1);
                const bool is_idle = index >= COLUMN_JOBS || channel >= cout || 2 * x0 + column >= side || (PARTS > 1 && begin >= end);
                unsigned busy = 0u;  // lanes that are not idle
                if constexpr (HAS_MOMENTS) busy = __ballot_sync(0xffffffffu, !is_idle);
                if (is_idle) continue;
                unsigned bias_of[4], style_of[4];
                load_words(bias_of, &shared_bias[group * CHUNK]);
                load_words(style_of, &shared_style[group * CHUNK]);
                const long long corner = (static_cast<long long>(sample) * side * side + output * side + 2 * x0 + column) * cout + channel;
                Y* const to = y + corner;
                T* const to_raw = y_raw + corner;
                const unsigned char* from[TAPS];
#pragma unroll
                for (int p = 0; p < TAPS; ++p) {
                    const int at = column + 2 * HALO_LOW - LEFT + p;
                    from[p] = t + t_offset(first, at) + t_group(group, at);
                }
                unsigned filtered[TAPS][4];  // the last rows, filtered along the row
#pragma unroll
                for (int p = 1; p < TAPS; ++p) {
                    const uint4 kept = ROW_TILES > 1 && row_tile > 0 ? carried[(job * TAPS + p) * THREADS] : make_uint4(0u, 0u, 0u, 0u);
                    filtered[p][0] = kept.x, filtered[p][1] = kept.y, filtered[p][2] = kept.z, filtered[p][3] = kept.w;
                }
#pragma unroll(TAPS <= 4 ? 4 : 1)
                for (int i_row = 0; i_row < (PARTS == 1 ? 2 * ROWS : PART_ROWS + TAPS - 1); ++i_row) {
                    const int row = first + i_row;
                    if (PARTS > 1 && row >= part_end) break;
#pragma unroll
                    for (int p = 0; p < TAPS - 1; ++p) {
#pragma unroll
                        for (int i = 0; i < 4; ++i) filtered[p][i] = filtered[p + 1][i];
                    }
#pragma unroll
                    for (int p = 0; p < TAPS; ++p) {
                        unsigned words[4];
                        load_words(words, from[p] + t_offset(i_row, 0));
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                            filtered[TAPS - 1][i] = word_multiply_add(tap_at(p, 2 * x0 + column), words[i], p == 0 ? 0u : filtered[TAPS - 1][i]);
                        }
                    }
                    if (row >= begin && row < part_end) {
                        const float value = shared_noise[row_tile % NOISE_BUFFERS][row * 2 * COLUMNS + column];
                        const unsigned shift = word_of(value);
                        unsigned out[4];
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                            unsigned z;
                            if constexpr (HAS_MOMENTS) {
                                z = word_multiply_add(style_of[i], shift, word_multiply_add(bias_of[i], bias_share(output + row, 2 * x0 + column, side), 0u));
                            } else {
                                z = word_multiply_add(bias_of[i], WORD_ONE, shift);
                            }
#pragma unroll
                            for (int p = 0; p < TAPS; ++p) z = word_multiply_add(tap_at(p, output + row), filtered[p][i], z);
                            out[i] = activated_word(z, gain_after(gain), bound, clamp);
                        }
                        if (HAS_RAW) store_words(to_raw + row * row_numbers, out);
                        if constexpr (HAS_MOMENTS) {
                            if (row == begin && job == 0) {  // the first row of outputs: the pivot is the warp's first pixel in it
                                unsigned one[4];
#pragma unroll
                                for (int i = 0; i < 4; ++i) one[i] = __shfl_sync(busy, out[i], index % GROUPS);
                                partials.set_pivot(one);
                                if (index % 32 < GROUPS) store_words(partials.pivots(index / 32) + group * 8, one);
                            }
                            partials.add(out);
                        } else {
#pragma unroll
                            for (int i = 0; i < 4; ++i) out[i] = styled(out[i], style_of[i]);
                        }
                        if constexpr (FP8_Y) {
                            store_e4m3(to + row * row_numbers, out);
                        } else if constexpr (HAS_Y) {
                            store_words(to + row * row_numbers, out);
                        }
                    }
                }
                if constexpr (ROW_TILES > 1) {
#pragma unroll
                    for (int p = 1; p < TAPS; ++p) {
                        carried[(job * TAPS + p) * THREADS] = make_uint4(filtered[p][0], filtered[p][1], filtered[p][2], filtered[p][3]);
                    }
                }
            }
            if constexpr (HAS_MOMENTS) partials.end_row_tile(row_tile == 0);
        }
    }
    if constexpr (NORMALISES) {  // t is no longer read: moments, then factors and offsets, by the threads that wrote the moments
        float2* const found = reinterpret_cast<float2*>(t);
        store_moments(found, partials_at, block);
        if (tid < CHANNELS) {
            const float2 own = n0 + tid < channels ? found[tid] : make_float2(0.0f, 0.0f);
            const float factor = own_scale * rsqrtf(own.y / static_cast<float>(side * side) + epsilon);
            found[tid] = make_float2(factor, fmaf(-own.x, factor, own_shift));
        }
        __syncthreads();
        T* const to = reinterpret_cast<T*>(y) + static_cast<long long>(sample) * side * side * cout + n0;
        for (unsigned i = tid; i < side * side * GROUPS; i += THREADS) {
            const unsigned channel = i % GROUPS * CHUNK, pixel = i / GROUPS;
            if (n0 + static_cast<int>(channel) >= cout) continue;
            T* const place = to + pixel * cout + channel;
            float v[8];
            load_many<8>(place, v);
#pragma unroll
            for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e], found[channel + e].x, found[channel + e].y);
            store_many<8>(place, v);
        }
    } else if constexpr (HAS_MOMENTS) {
        store_moments(moments + (static_cast<long long>(sample) * gridDim.x + blockIdx.x) * cout + n0, partials_at, block);
    }
}
