// The up-convolution of layers with few channels, where the FIR filter and not the products is the limit. The formula is
// that of gpu_backend/ops/modulated_up_conv.py, the four phases of the transposed picture t those of modulated_up_conv.cu.
//
// A warp goes down a strip of 14 columns of positions, row by row, and keeps in registers what the filter needs: the sums
// of products of a row of positions, two rows of t, are filtered along the row by exchange between lanes, then added to
// the partial sums of the next four rows of outputs. t never reaches shared memory, and nothing waits for a barrier of
// the block. A fragment of sixteen positions gives 14 columns: the filter needs one more at either side.
//
// A warpgroup has STRIPS strips side by side and 4 / STRIPS segments of ROWS rows one below the other. A block has
// WARPGROUPS warpgroups one below the other, whose products and filters overlap.
//
// Macros: CHANNELS 16|32, DEPTH and STEPS (input channels), STRIPS 1|2|4, ROWS, WARPGROUPS, STAGES, MIN_BLOCKS; SHARED_NBYTES: StreamingGeometry.dynamic_nbytes in streaming_tile.py; ACTIVATION;
// HAS_Y, HAS_RAW: which of y and y_raw are stored; FP8_X, and FP8_Y with HAS_Y alone, see parts/e4m3.cuh; ADDS_PICTURE, IMG_CHANNELS as in modulated_up_conv.cu; HAS_BLEND, see parts/blend.cuh. HALF, USE_WGMMA are 1.
// HAS_MOMENTS, for StyleGAN1: noise has a strength per channel, the filter meets t's edges with their signs turned as with ODD_BORDER in
// modulated_up_conv.cu, BLURS_BIAS is as there, and a block writes mean and M2 of its outputs (Partials in parts/merged_moments.cuh).
// #if remains where the list of parameters differs.
//
// The filter is 1 3 3 1 over 4 per axis. Along the row it is a sum of the outer two and three times the inner two; down the
// column it is three sums of two neighbours, since it is 1 1 times 1 1 times 1 1. The scale of both axes, 1 / 16, is in
// the demodulation, and a 64th of the bias in every number of t: so the filter needs nothing but sums.
//
// Positions of a fragment: lane group g (lane / 4) holds the positions 2 g and 2 g + 1, the fragment's rows g and g + 8.
// So three of four neighbours along the row are a lane's own. Even and odd columns of x lie apart in shared memory
// (a tensor map of five dimensions), so that the rows of a matrix are neighbours there.
// Channels of a block are packed so that a lane holds CHANNELS / 4 neighbours, which it stores at once.
//
// Shared memory from the first multiple of 1024 bytes on (SHARED_NBYTES, alignment included):
//     weights     STEPS x WEIGHT_SPACE
//     a warpgroup's ring of STAGES rows of x: segments x STEPS x PATCH_NBYTES each
//
// Pipeline of a warpgroup, for a row m of positions:
//     copies      | row m + STAGES - 2 -> stage of row m - 2, which the last row's products were the last to read
//     products    | rows m - 1 and m of x, all channels
//     filter      | rows 2 m and 2 m + 1 of t -> outputs 2 m - 2 and 2 m - 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/wgmma.cuh"
#include "parts/registers.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/blend.cuh"
#include "parts/tma.cuh"

enum : int {
    THREADS = 128 * WARPGROUPS,
    SEGMENTS = 4 / STRIPS,     // of a warpgroup
    STRIP_COLUMNS = 14,
    PAIRS = 7 * STRIPS + 2,    // of columns of x
    PATCH_LOADED = 2 * PAIRS * ROW_NBYTES,
    PATCH_NBYTES = (PATCH_LOADED + 1023) / 1024 * 1024,
    BOXES = SEGMENTS * STEPS,  // of a row
    STAGE_NBYTES = BOXES * PATCH_NBYTES,
    WEIGHT_NBYTES = 9 * CHANNELS * ROW_NBYTES,  // of a step
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    TURNS = 2 * STEPS * PRODUCTS,  // of products: half the neighbours of 32 bytes of input channels each
    NF = CHANNELS / 8,          // fragments of eight channels
    PHASE = CHANNELS / 2,       // sums of a phase
    LANE_CHANNELS = CHANNELS / 4,
};
static_assert(1024 + STEPS * WEIGHT_SPACE + WARPGROUPS * STAGES * STAGE_NBYTES == SHARED_NBYTES, "weights and stages lie in the launch's shared memory");
static_assert(HALF && USE_WGMMA, "the kernel multiplies fp16 or e4m3 by wgmma");
static_assert(!FP8_Y || (HAS_Y && !HAS_RAW), "y_raw is not e4m3");
static_assert(!HAS_MOMENTS || (WARPGROUPS == 1 && HAS_Y && !HAS_RAW && !FP8_X && !FP8_Y), "a block writes its moments, of y");
static_assert(!HAS_MOMENTS || !HAS_BLEND, "a layer of StyleGAN1 is blended after its normalisation");
static_assert(CHANNELS == 16 || CHANNELS == 32, "a lane stores its CHANNELS / 4 output channels at once");
#include "parts/picture_beside.cuh"

// The nine products in the order of the packed taps: those of the positions (m, n) and (m - 1, n - 1), then of (m - 1, n)
// and (m, n - 1). Whether a product takes x at the column before, and its phase, 2 * row + column. Sums of one phase are
// one accumulator: where instructions of different widths shared sums, the assembler had each wait for the one before.
__device__ __forceinline__ constexpr int is_before(int product) { return product == 4 || product > 6; }
__device__ __forceinline__ constexpr int phase_of(int product) { return product < 4 ? product : product == 6 ? 1 : product == 8 ? 2 : 0; }

// A stage is full when its boxes have come, and empty when every warp of the warpgroup has read it. The last barrier is
// that of the weights.
__shared__ __align__(8) unsigned long long full_barriers[WARPGROUPS * STAGES + 1], empty_barriers[WARPGROUPS * STAGES];
__device__ __forceinline__ unsigned full_barrier(unsigned number) { return shared_address(full_barriers) + number * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned number) { return shared_address(empty_barriers) + number * 8; }

// A box of columns 2 pair .. of one row: even columns, then odd ones.
__device__ __forceinline__ void load_row(
    unsigned target, const TensorMap* map, int channel, int pair, int row, int sample, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(target),
        "l"(map), "r"(channel), "r"(pair), "r"(0), "r"(row), "r"(sample), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void store_e4m3_channels(void* to, const unsigned (&words)[NF]) {
    if constexpr (NF == 4) {
        *static_cast<uint2*>(to) = make_uint2(to_e4m3x4(words[0], words[1]), to_e4m3x4(words[NF - 2], words[NF - 1]));
    } else {
        *static_cast<unsigned*>(to) = to_e4m3x4(words[0], words[1]);
    }
}

__device__ __forceinline__ void store_channels(void* to, const unsigned (&words)[NF]) {
    if constexpr (NF == 4) {
        *static_cast<uint4*>(to) = make_uint4(words[0], words[1], words[NF - 2], words[NF - 1]);
    } else {
        *static_cast<uint2*>(to) = make_uint2(words[0], words[1]);
    }
}

// ---- Moments ------------------------------------------------------------------------------------------------------------------------

// Of the lane's channels: sums of halved deltas from a pixel of its warp, and of their squares, as in parts/moments.cuh.
struct LaneMoments {
    unsigned pivot[NF];  // minus half a pixel's channels
    float sums[LANE_CHANNELS], squares[LANE_CHANNELS];

    __device__ __forceinline__ void set_pivot(const unsigned (&pixel)[NF]) {
#pragma unroll
        for (int n = 0; n < NF; ++n) pivot[n] = multiply_add2(pixel[n], 0xB800B800u, 0u);
    }

    __device__ __forceinline__ void add(const unsigned (&pixel)[NF]) {
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            float low, high;
            from_half2(multiply_add2(pixel[n], 0x38003800u, pivot[n]), low, high);
            sums[2 * n] += low, sums[2 * n + 1] += high;
            squares[2 * n] = fmaf(low, low, squares[2 * n]), squares[2 * n + 1] = fmaf(high, high, squares[2 * n + 1]);
        }
    }
};

// Adds up the lanes and warps of a block and writes mean and M2 of each channel. pixels_of(warp): outputs of a warp; the first has some.
template <typename PixelsOf>
__device__ __forceinline__ void store_moments(LaneMoments& moments, float2* to, int channels, int warp, int lane, PixelsOf pixels_of) {
    __shared__ float sums[4][2][CHANNELS], pivots[4][CHANNELS];
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; ++i) {
#pragma unroll
        for (int other = 4; other < 32; other <<= 1) {
            moments.sums[i] += __shfl_xor_sync(0xffffffffu, moments.sums[i], other);
            moments.squares[i] += __shfl_xor_sync(0xffffffffu, moments.squares[i], other);
        }
        if (lane < 4) sums[warp][0][lane * LANE_CHANNELS + i] = moments.sums[i], sums[warp][1][lane * LANE_CHANNELS + i] = moments.squares[i];
    }
#pragma unroll
    for (int n = 0; n < NF; ++n) {
        if (lane < 4) from_half2(moments.pivot[n], pivots[warp][lane * LANE_CHANNELS + 2 * n], pivots[warp][lane * LANE_CHANNELS + 2 * n + 1]);
    }
    __syncthreads();
    const int c = threadIdx.x;
    if (c >= channels) return;
    const float first = -2.0f * pivots[0][c];
    float sum = 0.0f, square = 0.0f, count = 0.0f;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const float pixels = static_cast<float>(pixels_of(w));
        if (pixels == 0.0f) continue;
        const float own = 2.0f * sums[w][0][c], own_square = 4.0f * sums[w][1][c], delta = -2.0f * pivots[w][c] - first;
        sum += fmaf(pixels, delta, own);
        square += fmaf(delta, fmaf(pixels, delta, 2.0f * own), own_square);
        count += pixels;
    }
    const float delta = sum / count, rest = square - sum * delta;
    to[c] = make_float2(first + delta, rest < 0.0f ? 0.0f : rest);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) streaming_up_conv(
    LAYER_PARAMETERS, int batch, int side, int cout, int demod_stride, int style_stride, float gain, float clamp
#if HAS_MOMENTS
    , const float* __restrict__ strengths, float2* __restrict__ moments
#endif
#if ADDS_PICTURE
    , PICTURE_PARAMETERS
#endif
#if HAS_BLEND
    , BLEND_PARAMETERS
#endif
    , const __grid_constant__ TensorMap tma_map) {
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
#if !HAS_MOMENTS
    const float* const strengths = nullptr;
    float2* const moments = nullptr;
#endif
#if !HAS_BLEND
    const T* const second = nullptr;
    const float* const mask = nullptr;
    const int mask_side = 1;
    const float mask_step = 1.0f;
#endif
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float shared_demod[CHANNELS], shared_bias[CHANNELS];
    __shared__ __align__(16) half_bits shared_style[CHANNELS];
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid / 32 % 4, warpgroup = warp_uniform(tid / 128);
    const int sample = blockIdx.z, n0 = blockIdx.y * CHANNELS, side_in = side / 2;
    const int tiles = (side_in + STRIPS * STRIP_COLUMNS - 1) / (STRIPS * STRIP_COLUMNS);
    const int first_column = static_cast<int>(blockIdx.x) % tiles * (STRIPS * STRIP_COLUMNS);
    const int group_row = (static_cast<int>(blockIdx.x) / tiles * WARPGROUPS + warpgroup) * (SEGMENTS * ROWS);
    const unsigned ring = pool + STEPS * WEIGHT_SPACE + warpgroup * (STAGES * STAGE_NBYTES);
    const bool is_loader = warp < BOXES && lane == 0;

    // Each warp asks for its share of the boxes, so that none falls behind. Row i of the ring is row i - 2 of the segment.
    auto load = [&](int i, int slot) {
        const unsigned barrier = full_barrier(warpgroup * STAGES + slot), stage = ring + slot * STAGE_NBYTES;
        expect_bytes(barrier, (BOXES + 3 - warp) / 4 * PATCH_LOADED);
#pragma unroll
        for (int turn = 0; turn < (BOXES + 3) / 4; ++turn) {
            const int box = warp + 4 * turn;
            if (box >= BOXES) break;
            load_row(stage + box * PATCH_NBYTES, &tma_map, box % STEPS * DEPTH, first_column / 2 - 1,
                     group_row + box / STEPS * ROWS - 2 + i, sample, barrier);
        }
    };
    if (tid == 0) {
        for (int i = 0; i < WARPGROUPS * STAGES; ++i) {
            init_barrier(full_barrier(i), BOXES < 4 ? BOXES : 4);
            init_barrier(empty_barrier(i), 4);
        }
        init_barrier(full_barrier(WARPGROUPS * STAGES), 1);
        fence_barrier_init();
        expect_bytes(full_barrier(WARPGROUPS * STAGES), STEPS * WEIGHT_NBYTES);
        const unsigned char* const from = static_cast<const unsigned char*>(weight) + static_cast<long long>(blockIdx.y) * STEPS * WEIGHT_NBYTES;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) bulk_load(pool + step * WEIGHT_SPACE, from + step * WEIGHT_NBYTES, WEIGHT_NBYTES, full_barrier(WARPGROUPS * STAGES));
    }
    wait_for_previous_kernel();
    for (int i = tid; i < CHANNELS; i += THREADS) {
        const int channel = n0 + i;
        const bool there = channel < cout;
        shared_demod[i] = !there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * (gain_before(gain) * (0.0625f * FP8_X_UNIT));
        shared_bias[i] = there && bias ? bias[channel] * (gain_before(gain) * 0.015625f) : 0.0f;
        if constexpr (HAS_MOMENTS) {
            shared_style[i] = to_half(there && strengths ? strengths[channel] : 0.0f);  // of the noise: there is no style
        } else {
            shared_style[i] = to_half(!there ? 0.0f : (next_style ? next_style[sample * style_stride + channel] : 1.0f) * FP8_Y_UNIT);
        }
    }
    __syncthreads();
    if (group_row >= side_in) return;
    if (is_loader) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) load(i, i);
    }

    const int strip = warp % STRIPS, segment = warp / STRIPS, group = lane >> 2, quarter = lane & 3;
    const int first_row = group_row + segment * ROWS;
    const int column = first_column + strip * STRIP_COLUMNS - 1 + 2 * group;  // the lane's first position
    const int channel = n0 + quarter * LANE_CHANNELS;
    const bool has_first = group > 0 && column < side_in && channel < cout, has_second = group < 7 && column + 1 < side_in && channel < cout;
    // What stands for t beyond its border is `edge` minus t there: twice the bias of a number, or nothing where the bias is blurred too.
    unsigned edge[NF];
#pragma unroll
    for (int n = 0; n < NF; ++n) {
        const float* const own = shared_bias + quarter * LANE_CHANNELS + 2 * n;
        edge[n] = BLURS_BIAS ? 0u : to_half2(2.0f * own[0], 2.0f * own[1]);
    }
    LaneMoments sums_of_outputs = {};
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    // The lane's matrix rows in a patch, of positions' own columns and of the columns before: positions 2 j have odd
    // columns of their own, which lie behind the even ones.
    const int half = lane >> 4, is_second = lane >> 3 & 1, pair = strip * 7 + (lane & 7);
    const int own = is_second ? pair + 1 : PAIRS + pair, before = is_second ? PAIRS + pair : pair;
    const unsigned own_at = segment * (STEPS * PATCH_NBYTES) + own * ROW_NBYTES + swizzle(half, own) * 16;
    const unsigned before_at = segment * (STEPS * PATCH_NBYTES) + before * ROW_NBYTES + swizzle(half, before) * 16;

    const unsigned bound = to_half2(clamp, clamp);
    // Of the last row of t: filtered along the row, and its sums with the rows before once and twice.
    unsigned last[3][4][NF] = {};
    const int row_numbers = side * cout;
    Y* to = (HAS_Y ? y : reinterpret_cast<Y*>(y_raw)) + ((static_cast<long long>(sample) * side + 2 * (first_row - 2)) * side + 2 * column) * cout + channel;
    const unsigned matrix = matrix_descriptor(pool);

    wait_barrier(full_barrier(WARPGROUPS * STAGES), 0);
    wait_barrier(full_barrier(warpgroup * STAGES), 0);
    // Noise of the outputs that turn i completes: the lane's is that of one of its group's four columns. It is fetched a
    // turn ahead.
    auto noise_of = [&](int i, int r) {
        const int row = 2 * (first_row + i - 2) + r, at = 2 * column + quarter;
        return i < 2 || row >= side || at < 0 || at >= side ? 0.0f : layer_noise.fetch(row * side + at);
    };
    float noises[2] = {};
    int slot = 0, phase = 0;  // of row m of x, which is the next one
    int empty_slot = 0, empty_phase = 0;
    for (int i = 0; i < ROWS + 2; ++i) {
        const int above_slot = slot;
        const unsigned above = ring + slot * STAGE_NBYTES;
        if (++slot == STAGES) slot = 0, phase ^= 1;
        const unsigned here = ring + slot * STAGE_NBYTES;
        const int out_row = 2 * (first_row + i - 2);
        // The row before the last one was read in the last turn: its stage takes the next row.
        if (i > 0 && i + STAGES - 1 < ROWS + 3 && is_loader) {
            wait_barrier(empty_barrier(warpgroup * STAGES + empty_slot), empty_phase);
            load(i + STAGES - 1, empty_slot);
        }
        if (i > 0 && ++empty_slot == STAGES) empty_slot = 0, empty_phase ^= 1;
        float sum[4][PHASE];
        wait_barrier(full_barrier(warpgroup * STAGES + slot), phase);
        __syncwarp();
        // Two neighbours at a time: those of one turn are fetched while the products of the turns before go on.
        unsigned a[3][2][4];
        auto fetch = [&](int turn) {
            const int step = turn / 2 / PRODUCTS, chunk = turn / 2 % PRODUCTS * 32;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                // Stages lie at multiples of 1024 bytes, so that chunks may be swizzled in the address itself. It is
                // computed again in each turn instead of being kept in a register.
                const unsigned at = (turn % 2 == n ? here : above) + (n == 0 ? own_at : before_at);
                ldmatrix_x4(a[turn % 3][n], opaque(at) + step * PATCH_NBYTES ^ chunk);
            }
        };
        fetch(0);
        fetch(1);
        if constexpr (HAS_BLEND) {  // the rows of outputs that this turn completes, a lane each
            const int row = 2 * (first_row + i - 2) + lane, begin = 2 * (first_column + strip * STRIP_COLUMNS), end = min(side, begin + 2 * STRIP_COLUMNS);
            if (i >= 2 && lane < 2 && row < side && begin < end) prefetch(second + (row * side + begin) * cout, (end - begin) * cout);
        }
#pragma unroll
        for (int k = 0; k < TURNS; ++k) {
            const int step = k / 2 / PRODUCTS, chunk = k / 2 % PRODUCTS * 32;
            const unsigned b = matrix + (step * WEIGHT_SPACE + chunk >> 4);
            wgmma_fence();
#pragma unroll
            for (int p = k % 2 == 0 ? 0 : 5; p < (k % 2 == 0 ? 5 : 9); ++p) {
                if (k == 0 && p < 4) {
                    wgmma_first<CHANNELS>(sum[phase_of(p)], a[k % 3][is_before(p)], b + p * (CHANNELS * ROW_NBYTES >> 4));
                } else {
                    wgmma<CHANNELS>(sum[phase_of(p)], a[k % 3][is_before(p)], b + p * (CHANNELS * ROW_NBYTES >> 4));
                }
            }
            wgmma_commit();
            wgmma_wait<1>();
            if (k + 2 < TURNS) fetch(k + 2);
        }
        wgmma_wait<0>();
#pragma unroll
        for (int phase = 0; phase < 4; ++phase) wgmma_fence_sums(sum[phase]);
        if (lane == 0) arrive(empty_barrier(warpgroup * STAGES + above_slot));

        const bool emits = i >= 2 && out_row < side;
        const float4* const demods = reinterpret_cast<const float4*>(shared_demod + quarter * LANE_CHANNELS);
        const float4* const biases = reinterpret_cast<const float4*>(shared_bias + quarter * LANE_CHANNELS);
        unsigned style_of[NF];
#pragma unroll
        for (int n = 0; n < NF; ++n) {
            style_of[n] = reinterpret_cast<const unsigned*>(shared_style)[quarter * NF + n];
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float scaled = opaque(noises[r]) * layer_noise.strength;
            noises[r] = noise_of(i + 1, r);
            const unsigned shift = to_half2(scaled, scaled);
            unsigned shifts[4];
#pragma unroll
            for (int c = 0; c < 4; ++c) shifts[c] = __shfl_sync(0xffffffffu, shift, c, 4);
            unsigned words[4][NF];
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const float4 d4 = demods[n / 2], b4 = biases[n / 2];
                const float d0 = n % 2 == 0 ? d4.x : d4.z, d1 = n % 2 == 0 ? d4.y : d4.w;
                const float b0 = n % 2 == 0 ? b4.x : b4.z, b1 = n % 2 == 0 ? b4.y : b4.w;
                const float* const even = sum[2 * r] + n * 4;
                const float* const odd = sum[2 * r + 1] + n * 4;
                // t at the lane's two positions, both phases, and what the neighbours hold.
                unsigned t[7];
                t[1] = to_half2(even[0] * d0 + b0, even[1] * d1 + b1), t[2] = to_half2(odd[0] * d0 + b0, odd[1] * d1 + b1);
                t[3] = to_half2(even[2] * d0 + b0, even[3] * d1 + b1), t[4] = to_half2(odd[2] * d0 + b0, odd[3] * d1 + b1);
                if constexpr (HAS_MOMENTS) {
                    const unsigned beyond = multiply_add2(t[3], 0xBC00BC00u, edge[n]);
                    if (column < 0) t[2] = beyond;
                    if (column + 1 == side_in) t[4] = beyond;
                }
                t[0] = __shfl_up_sync(0xffffffffu, t[4], 4);
                t[5] = __shfl_down_sync(0xffffffffu, t[1], 4);
                t[6] = __shfl_down_sync(0xffffffffu, t[2], 4);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const unsigned once = add_thrice2(add2(t[c], t[c + 3]), add2(t[c + 1], t[c + 2]));
                    unsigned twice = add2(once, last[0][c][n]);
                    // A row beyond t's border and the one beside it add up to 8 edges.
                    if (HAS_MOMENTS && first_row + i - 1 == r * side_in) twice = multiply_add2(edge[n], 0x48004800u, 0u);
                    const unsigned thrice = add2(twice, last[1][c][n]), whole = add2(thrice, last[2][c][n]);
                    words[c][n] = HAS_MOMENTS ? multiply_add2(shifts[c], style_of[n], whole) : add2(whole, shifts[c]);
                    last[0][c][n] = once, last[1][c][n] = twice, last[2][c][n] = thrice;
                }
            }
            if (emits) {
                const int pixel = (out_row + r) * side + 2 * column;  // the first of four
                float own_share = 0.0f;  // of the one of its group's four pixels that the lane looks up
                if constexpr (HAS_BLEND) {
                    const int at = 2 * column + quarter;
                    if (at >= 0 && at < side) own_share = mask_at(mask, mask_side, mask_step, out_row + r, at);
                }
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    unsigned out[NF], styled[NF];
#pragma unroll
                    for (int n = 0; n < NF; ++n) out[n] = activated_word(words[c][n], gain_after(gain), bound, clamp);
                    if constexpr (HAS_BLEND) {
                        const float share = __shfl_sync(0xffffffffu, own_share, c, 4);
                        if (c < 2 ? has_first : has_second) blend_words(out, second + ((pixel + c) * cout + channel), share);
                    }
#pragma unroll
                    for (int n = 0; n < NF; ++n) {
                        // With a blend, registers are short: styles are read again.
                        const unsigned style = HAS_BLEND ? reinterpret_cast<const unsigned*>(shared_style)[opaque(quarter) * NF + n] : style_of[n];
                        styled[n] = HAS_MOMENTS ? out[n] : multiply_add2(out[n], style, 0u);
                    }
                    if (HAS_MOMENTS && i == 2 && r == 0 && c == 0) {  // the pivot is the warp's second position, which is never a halo
                        unsigned one[NF];
#pragma unroll
                        for (int n = 0; n < NF; ++n) one[n] = __shfl_sync(0xffffffffu, out[n], 4 + quarter);
                        sums_of_outputs.set_pivot(one);
                    }
                    if (!(c < 2 ? has_first : has_second)) continue;
                    if constexpr (FP8_Y) {
                        store_e4m3_channels(to + c * cout, styled);
                    } else {
                        store_channels(to + c * cout, HAS_Y ? styled : out);
                    }
                    if constexpr (HAS_Y && HAS_RAW) store_channels(to + (y_raw - reinterpret_cast<T*>(y)) + c * cout, out);
                    if constexpr (HAS_MOMENTS) sums_of_outputs.add(out);
                }
            }
            to += row_numbers;
        }
    }
    if constexpr (HAS_MOMENTS) {
        auto pixels_of = [&](int w) {
            const int columns = side_in - first_column - w % STRIPS * STRIP_COLUMNS, rows = side_in - group_row - w / STRIPS * ROWS;
            return 4 * max(0, min(columns, static_cast<int>(STRIP_COLUMNS))) * max(0, min(rows, ROWS));
        };
        store_moments(sums_of_outputs, moments + (static_cast<long long>(sample) * gridDim.x + blockIdx.x) * cout + n0, min(CHANNELS, cout - n0), warp, lane,
                      pixels_of);
    }
}
