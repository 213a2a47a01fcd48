// The activation between two filters (gpu_backend/ops/filtered_lrelu.py) on tensor cores, times the style of the
// convolution that reads the result. A filter of few taps along an axis is the product with a band of a matrix:
//
//     16 activated samples   = BAND (16 x 16) * the WINDOW samples that they depend on
//     8 output samples       = BAND (8 x 32)  * 32 activated samples, of which 26 have a weight
//
// Filters have six taps a phase before the activation; the one after it has twelve, halves each axis, and is a sum of
// RANK products of both axes. With t counting the samples that are activated, s = t + PHASE, an axis takes
//     u[t] = sum_i up_taps[s % UP][i] x[first + s / UP - i]     i = 0 .. 5, x is 0 outside
// A block loops down two column tiles of TILES * 16 activated columns and 8 channels each: neighbours in the order of column
// tiles, then eights of channels, so mostly 16 channels of one column tile. A warp owns 16 of the columns. A step is 16
// activated rows:
//     NEW samples of a column arrive       in shared memory, copied STAGES steps ahead
//     -> filtered along the row            `ring`, the warp's own
//     -> filtered along the column, activated, filtered along the column     in registers: sums are the next product's operand
//     -> 8 rows of output, all columns, of each product     `kept`
//     -> filtered along the row            in registers, to y, by all warps but the last
// With RANK 0 the filter after the activation is the same in all directions, and no sum of few products. Twice a step:
//     -> filtered along the column, activated         in registers
//     -> 8 activated rows, all columns    `kept`
//     -> for each row of output that one of them adds to, filtered along the row with the filter's row
// With FP8_Y, which needs sm_89 at least, y is e4m3 (parts/e4m3.cuh), and its channels are padded with zeros to a multiple of 16.
// With IMG_CHANNELS a block computes its part of toRGB, and stores y only if it is not null:
//     rgb_parts[channel block][picture][pixel][i] = sum_o rgb_weight[i][o] rgb_style[o] y[pixel][o]
// Pixels are 32 bytes in shared memory, swizzled: every second four have their halves swapped, so that eight in a row meet all banks, and
// so do eight in a column, rows being 16 bytes longer than they need. Where threads store words and no matrices, the first
// half of a pixel in `ring` and `kept` holds the even words of its channels, the second the odd ones, so that a thread
// stores two neighbours.
//
// Macros: UP 2|4, PHASE, RANK 0|1|2, TILES, STAGES, MIN_BLOCKS, IMG_CHANNELS up to 8, 0 for none, as with RANK 2 and FP8_Y.
// bands: words of each lane, gains in them, for bands of 8 rows by 16 in two halves: 2 of activated samples; the same once
// more, since as first factors they need other registers and would be copied for every product; then 2 of output for each
// product down the columns, with RANK 2 for each along the rows too; with RANK 0, 2 for each of the filter's first six rows.
// first_x, first_y: x's sample at i = 0 of t = -PHASE. segment: rows of output of a block, a multiple of 8.
// Grid: pairs of eights of channels, of all column tiles; segments; pictures.
//
// Shared memory, SHARED_NBYTES (FilterGeometry.shared_nbytes in filter_tile.py):
//     stages      STAGES x STAGE_NBYTES: NEW rows of samples, COLUMNS pixels each
//     kept        KEPT_ROWS x KEPT_PITCH: rows between the two filters along x, read by the warp itself and the one left of it
//     ring        of each warp, RING x RING_PITCH: samples filtered along the row
//
// Pipeline of a step; copies run up to STAGES steps in front:
//     copies        | NEW rows of a later step -> stage
//     all warps     | stage -> along x -> ring -> along y -> activation -> along y -> kept
//     all but last  |                       wait for the warp to the right | kept -> along x -> y, toRGB
#define HALF 1
#define ACTIVATION 2
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/copies.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/half_products.cuh"
#define DEPTH 16
#include "parts/tensor_core.cuh"

// Constants are enumerators: NVRTC gives every constexpr variable memory on the GPU, used or not. `#if` stands where variants have other
// declarations or instructions.
enum : int {
    TAPS = 6,
    CHANNELS = 16,
    PIXEL = 2 * CHANNELS,  // bytes
    NEW = 16 / UP,  // samples of an axis that 16 activated ones have of their own
    OLD = 6,  // that they share with those before
    WINDOW = OLD + NEW,
    LEAD = 8 / NEW,  // steps that arrive before the first that is activated; OLD + 2 rows
    RING = 16,  // rows, so that eight in a row meet all banks across its end too
    RING_PITCH = 16 * PIXEL + 16,
    RADIAL = RANK == 0,
    PASSES = RADIAL ? 2 : 1,  // over the activated rows of a step
    SETS = RANK == 2 ? 2 : 1,  // of rows that are kept
    KEPT_ROWS = 8 * SETS,
    OUT_ROWS = 8 / PASSES,  // of a pass
    BANDS = RADIAL ? TAPS : RANK == 2 ? 4 : 1,
    ACROSS = RANK == 2 ? 2 : 0,  // first of the bands along the row
    KEPT_PITCH = TILES * 16 * PIXEL + 16,
    COLUMNS = NEW * (TILES - 1) + WINDOW,
    SUMS = RADIAL ? TAPS : 16 * RANK,  // under way: of rows of output, the newest first; of 8 rows in a column
    THREADS = 32 * TILES,
    WIDTH = 8 * (TILES - 1),  // of a column tile, in outputs
    STAGE_NBYTES = NEW * COLUMNS * PIXEL,
    ROW_CHUNKS = COLUMNS * 2,  // 16 bytes each
    ROWS_AT_ONCE = THREADS / ROW_CHUNKS < NEW ? THREADS / ROW_CHUNKS : NEW,
    AT_ONCE = IMG_CHANNELS || UP == 2 && SETS == 2 ? 2 : 4,  // columns, whose products do not wait for one another
    ROWS_LOADED = 4,  // likewise
    OUT_UNROLLED = IMG_CHANNELS ? 1 : RANK == 1 ? 2 : 4,
};
static_assert(STAGES * STAGE_NBYTES + KEPT_ROWS * KEPT_PITCH + TILES * RING * RING_PITCH == SHARED_NBYTES,
              "the launch's shared memory is that of this layout");
#define STORES_MATRICES (LEVEL >= 900)
static_assert(!FP8_Y || !IMG_CHANNELS, "y is e4m3 where a convolution reads it, and not toRGB");

__device__ __forceinline__ int half_of(int half, int column) { return (half ^ ((column >> 2) & 1)) * 16; }

__device__ __forceinline__ unsigned leaky(unsigned word, unsigned bound) {
#if LEVEL >= 800
    return activated2(word, bound);
#else
    float low, high;
    from_half2(word, low, high);
    const float most = from_half((half_bits)(bound & 0xffffu));
    return to_half2(bounded(activate(low), most), bounded(activate(high), most));
#endif
}

// A warp waits only for the warp to its right, whose columns it reads too. Barrier 0 is the block's.
__device__ __forceinline__ void arrive_at(int barrier) { asm volatile("bar.arrive %0, 64;\n" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void meet_at(int barrier) { asm volatile("bar.sync %0, 64;\n" ::"r"(barrier) : "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) filtered_lrelu(
    const T* __restrict__ x, Y* __restrict__ y, const float* __restrict__ next_style, const unsigned* __restrict__ bands,
    const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style, float* __restrict__ rgb_parts, int in_size,
    int out_size, int channels, int style_stride, int first_x, int first_y, int segment, unsigned bound) {
    extern __shared__ float4 shared[];
    unsigned char* const stages = reinterpret_cast<unsigned char*>(shared);
    unsigned char* const kept = stages + STAGES * STAGE_NBYTES;
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    unsigned char* const ring = kept + KEPT_ROWS * KEPT_PITCH + warp * (RING * RING_PITCH);

    const int column_tiles = (out_size + WIDTH - 1) / WIDTH;
    // A part of toRGB sums all channels of a block, so they lie in one column tile.
    const int eights = IMG_CHANNELS ? (channels + 15) / 16 * 2 : channels / 8;
    const int y0 = static_cast<int>(blockIdx.y) * segment;
    const int rows = min(segment, out_size - y0);
    const size_t sample = blockIdx.z;
    const int steps = LEAD + (rows + 7) / 8 + 1;

    unsigned up[2][2], up_both[4], down[BANDS][2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        up[i / 2][i % 2] = bands[i * 32 + lane];
        up_both[i % 2 * 2 + i / 2] = bands[(4 + i) * 32 + lane];
#pragma unroll
        for (int band = 0; band < BANDS; ++band) down[band][i / 2][i % 2] = bands[(8 + band * 4 + i) * 32 + lane];
    }

    wait_for_previous_kernel();

    // A thread copies one chunk of one column, and of every ROWS_AT_ONCE-th row.
    const T* const picture = x + sample * in_size * in_size * channels;
    const int copied_row = tid / ROW_CHUNKS, copied_column = tid % ROW_CHUNKS / 2, copied_chunk = tid % 2;
    const int copied_column_tile = static_cast<int>(2 * blockIdx.x + copied_chunk) / eights;
    const int from_column = first_x + copied_column_tile * (WIDTH / (UP / 2)) - (OLD - 1) + copied_column;
    const int from_channel = static_cast<int>(2 * blockIdx.x + copied_chunk) % eights * 8;
    int from_row = first_y + y0 / (UP / 2) - (OLD + 1) + copied_row;
    int from_place = (from_row * in_size + from_column) * channels + from_channel;
    const int to_place = (copied_row * COLUMNS + copied_column) * PIXEL + half_of(copied_chunk, copied_column);
    const bool copies = copied_row < ROWS_AT_ONCE;
    const bool is_inside =
        static_cast<unsigned>(from_column) < static_cast<unsigned>(in_size) && from_channel < channels && copied_column_tile < column_tiles;
    auto load = [&](int step) {
        if (step < steps && copies) {
            const unsigned to = shared_address(stages + step % STAGES * STAGE_NBYTES + to_place);
#pragma unroll
            for (int i = 0; i < NEW; i += ROWS_AT_ONCE) {
                if (NEW % ROWS_AT_ONCE != 0 && copied_row + i >= NEW) continue;
                const bool wanted = is_inside && static_cast<unsigned>(from_row + i) < static_cast<unsigned>(in_size);
                const T* const from = wanted ? picture + (from_place + i * in_size * channels) : x;
                copy_async(to + i * (COLUMNS * PIXEL), from, wanted);
            }
            from_row += NEW;
            from_place += NEW * in_size * channels;
        }
        commit_copies();
    };

    // Of a matrix that is loaded, this lane's row; two of them lie behind one another, or are the halves of pixels. What
    // is beyond the window meets zeros, but it has to be a number.
    const int matrix = lane / 8, place = lane % 8, quad = lane / 4, word = lane % 4;
    const int sample_column = NEW * warp + min(place + 8 * (matrix % 2), WINDOW - 1);
    const int sample_place = sample_column * PIXEL + half_of(matrix / 2, sample_column);
    const int window_row = RING - WINDOW + min(place + 8 * (matrix / 2), WINDOW - 1);
    const int kept_column = place + 8 * (matrix / 2);
    const int kept_place = warp * (16 * PIXEL) + kept_column * PIXEL + half_of(matrix % 2, kept_column);

    // What a lane stores of a pixel's 16 channels, where.
#if STORES_MATRICES
    const int own_half = lane % 2, channel_in_half = 0, own_column = lane / 2 % 8, own_row = lane / 16;
    const int ring_place = (place + 8 * (matrix % 2)) * PIXEL + half_of(matrix / 2, place);
    const int kept_row = SETS == 2 ? place + 8 * (matrix / 2) : place;
    const int turned_row = kept_row * KEPT_PITCH + (warp * 16 + (SETS == 2 ? 0 : matrix / 2)) * PIXEL;
    const unsigned turned_to[2] = {
        shared_address(kept + turned_row + half_of(matrix % 2, 0)), shared_address(kept + turned_row + half_of(matrix % 2, 4))};
#else
    const int own_half = word / 2, channel_in_half = word % 2 * 4, own_column = quad, own_row = 0;
#endif
    const int own_column_tile = static_cast<int>(2 * blockIdx.x + own_half) / eights;
    const int channel = static_cast<int>(2 * blockIdx.x + own_half) % eights * 8 + channel_in_half;
    const bool has_channel = channel < channels && own_column_tile < column_tiles;
#if !IMG_CHANNELS
    unsigned style[2];  // of the channels whose sums a lane has
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int held = STORES_MATRICES ? quad + 8 * i : quad / 2 * 4 + quad % 2 + 2 * i;
        const int unit = 2 * blockIdx.x + held / 8, styled = unit % eights * 8 + held % 8;
        style[i] = to_half2(FP8_Y_UNIT, FP8_Y_UNIT);
        if (next_style != nullptr && styled < channels) {
            const float factor = next_style[sample * style_stride + styled] * FP8_Y_UNIT;
            style[i] = to_half2(factor, factor);
        }
    }
#endif
    const int to_column = own_column_tile * WIDTH + warp * 8 + own_column;
    const bool has_output = has_channel && to_column < out_size && (!IMG_CHANNELS || y != nullptr);
    const int stored_channels = FP8_Y ? channels + (channels & 8) : channels;  // multiples of 16, and of 8
    Y* const to_corner = y + (sample * out_size * out_size + (y0 + own_row) * out_size + to_column) * stored_channels + channel;
#if IMG_CHANNELS
    const int pair = static_cast<int>(blockIdx.x) % (eights / 2);
    const int rgb_column = static_cast<int>(blockIdx.x) / (eights / 2) * WIDTH + warp * 8 + quad;
    const bool has_rgb = rgb_column < out_size && 2 * word < IMG_CHANNELS;
    unsigned rgb_of[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int from = pair * 16 + (STORES_MATRICES ? 8 * i + 2 * word : 4 * word + 2 * i);
        float pairs[2] = {0.0f, 0.0f};
        if (quad < IMG_CHANNELS && from < channels) {
#pragma unroll
            for (int e = 0; e < 2; ++e)
                pairs[e] = rgb_weight[quad * channels + from + e] * rgb_style[sample * style_stride + from + e];
        }
        rgb_of[i] = to_half2(pairs[0], pairs[1]);
    }
    float* const rgb_picture = rgb_parts + (pair * gridDim.z + sample) * out_size * out_size * IMG_CHANNELS;
    const int rgb_corner = (y0 * out_size + rgb_column) * IMG_CHANNELS + 2 * word;
#endif

    unsigned sums[SUMS][2];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sums[i][0] = sums[i][1] = 0u;
#pragma unroll
    for (int i = 0; i < STAGES; ++i) load(i);
    int ring_row = 0;  // of the first new row of a step
    for (int step = 0; step < steps; ++step) {
        wait_copies<STAGES == 1 ? 0 : STAGES - 2>();
        __syncthreads();
        // All warps have finished the previous step.
        if (STAGES > 1 && step > 0) load(step - 1 + STAGES);
        const unsigned char* const stage = stages + step % STAGES * STAGE_NBYTES;
#pragma unroll
        for (int first = 0; first < NEW; first += ROWS_LOADED) {
            unsigned samples[ROWS_LOADED][4];
#pragma unroll
            for (int i = 0; i < ROWS_LOADED; ++i) {
                ldmatrix_trans(samples[i], shared_address(stage + (first + i) * (COLUMNS * PIXEL) + sample_place));
            }
#pragma unroll
            for (int i = 0; i < ROWS_LOADED; ++i) {
                unsigned made[2][2];
#pragma unroll
                for (int chunk = 0; chunk < 2; ++chunk) {
                    const unsigned factor[2] = {samples[i][2 * chunk], samples[i][2 * chunk + 1]};
                    product(made[chunk], up_both, factor);
                }
                unsigned char* const to = ring + (ring_row + first + i) * RING_PITCH;
#if STORES_MATRICES
                store_matrices(shared_address(to + ring_place), made[0][0], made[0][1], made[1][0], made[1][1]);
#else
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    *reinterpret_cast<unsigned*>(
                        to + (quad + 8 * (k % 2)) * PIXEL + half_of(word % 2, quad) + (2 * (k / 2) + word / 2) * 4) = made[k / 2][k % 2];
                }
#endif
            }
        }
        if (STAGES == 1) {
            __syncthreads();
            load(step + STAGES);
        }
        __syncwarp();
        ring_row = (ring_row + NEW) % RING;
        // The oldest row of the ring is the one that is written next. Two at least are behind the window.
        unsigned char* const behind = ring + ring_row * RING_PITCH;
        const unsigned char* const from = ring + (ring_row + window_row) % RING * RING_PITCH;
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            if (step >= LEAD) {
#pragma unroll
                for (int first = 0; first < 16; first += AT_ONCE) {
                    unsigned window[AT_ONCE][4], done[AT_ONCE][2 * SETS];
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) {
                        const int column = first + i;
                        ldmatrix_trans(window[i], shared_address(from + column * PIXEL + half_of(matrix % 2, column)));
                    }
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) {
                        unsigned activated[4];
#pragma unroll
                        for (int part = 0; part < 2 / PASSES; ++part) {
                            unsigned made[2];
                            product(made, window[i], up[RADIAL ? pass : part]);
                            activated[2 * part] = leaky(made[0], bound);
                            activated[2 * part + 1] = leaky(made[1], bound);
                        }
#if !RANK
                        done[i][0] = activated[0], done[i][1] = activated[1];
#else
#pragma unroll
                        for (int set = 0; set < SETS; ++set) {
                            unsigned next[2], both[2];
                            unsigned(&sum)[2] = sums[set * 16 + first + i];
                            product(next, activated, down[set][0]);
                            product_plus(both, activated, down[set][1], sum[0], sum[1]);
                            sum[0] = next[0], sum[1] = next[1];
                            done[i][2 * set] = both[0], done[i][2 * set + 1] = both[1];
                        }
#endif
                    }
#if STORES_MATRICES
#pragma unroll
                    for (int i = 0; i < AT_ONCE; i += 2 / SETS) {
                        const int column = first + i, last = i + 2 / SETS - 1;
                        store_turned(turned_to[column / 4 % 2] + column * PIXEL, done[i][0], done[i][1], done[last][2 * SETS - 2], done[last][2 * SETS - 1]);
                    }
#else
                    unsigned char* const to = kept + quad * KEPT_PITCH + warp * (16 * PIXEL) + word * 4;
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) {
#pragma unroll
                        for (int part = 0; part < 2 * SETS; ++part) {
                            *reinterpret_cast<unsigned*>(
                                to + part / 2 * (8 * KEPT_PITCH) + (first + i) * PIXEL + half_of(part % 2, first + i)) =
                                turned(done[i][part]);
                        }
                    }
#endif
                }
            }
            if (warp > 0) arrive_at(warp);
            if (warp < TILES - 1) meet_at(warp + 1);
            if (step >= LEAD && warp < TILES - 1) {
                const unsigned from_kept = shared_address(kept + kept_place);
                // Of output; what is before the first belongs to others.
                const int first_row = (step - LEAD) * 8 - (RADIAL ? TAPS - 1 : 8) + pass * OUT_ROWS;
#pragma unroll(OUT_UNROLLED)
                for (int row = 0; row < OUT_ROWS; row += 2) {
                    unsigned sum[2][2];
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        unsigned samples[2][4];
#if !RANK
#pragma unroll
                        for (int odd = 0; odd < 2; ++odd) {
                            ldmatrix_trans(samples[0], from_kept + (2 * (row + i) + odd) * KEPT_PITCH);
                            ldmatrix_trans(samples[1], from_kept + (2 * (row + i) + odd) * KEPT_PITCH + 16 * PIXEL);
#pragma unroll
                            for (int k = 0; k < 2 * TAPS; ++k) {
                                const int age = k % TAPS, tap = 2 * age + odd;
                                product_plus(
                                    sums[age], samples[k / TAPS], down[tap < TAPS ? tap : 2 * TAPS - 1 - tap][k / TAPS],
                                    sums[age][0], sums[age][1]);
                            }
                        }
                        sum[i][0] = sums[TAPS - 1][0], sum[i][1] = sums[TAPS - 1][1];
#pragma unroll
                        for (int age = TAPS - 1; age > 0; --age) sums[age][0] = sums[age - 1][0], sums[age][1] = sums[age - 1][1];
                        sums[0][0] = sums[0][1] = 0u;
#else
                        sum[i][0] = sum[i][1] = 0u;
#pragma unroll
                        for (int set = 0; set < SETS; ++set) {
                            ldmatrix_trans(samples[0], from_kept + (8 * set + row + i) * KEPT_PITCH);
                            ldmatrix_trans(samples[1], from_kept + (8 * set + row + i) * KEPT_PITCH + 16 * PIXEL);
                            product_plus(sum[i], samples[0], down[ACROSS + set][0], sum[i][0], sum[i][1]);
                            product_plus(sum[i], samples[1], down[ACROSS + set][1], sum[i][0], sum[i][1]);
                        }
#endif
                    }
#if !IMG_CHANNELS
#pragma unroll
                    for (int i = 0; i < 4; ++i) sum[i / 2][i % 2] = multiply_add2(sum[i / 2][i % 2], style[i % 2], 0u);
#endif
                    Y* const to = to_corner + (first_row + row) * out_size * stored_channels;
#if STORES_MATRICES
                    // Turned by way of shared memory, behind the window; the other of both rows may still be read.
                    unsigned char* const turning = behind + row / 2 % 2 * RING_PITCH;
                    store_turned(
                        shared_address(turning + matrix / 2 * (8 * PIXEL) + place * PIXEL + half_of(matrix % 2, place)), sum[0][0], sum[0][1],
                        sum[1][0], sum[1][1]);
                    __syncwarp();
                    if (has_output && static_cast<unsigned>(first_row + row + own_row) < static_cast<unsigned>(rows)) {
                        const uint4 made = *reinterpret_cast<const uint4*>(turning + lane / 2 * PIXEL + half_of(lane % 2, lane / 2));
#if FP8_Y
                        const uint2 eight = make_uint2(to_e4m3x4(made.x, made.y), to_e4m3x4(made.z, made.w));
                        *reinterpret_cast<uint2*>(to) = eight;
                        if (channel + 8 == channels && channels & 8) *reinterpret_cast<uint2*>(to + 8) = make_uint2(0u, 0u);
#else
                        *reinterpret_cast<uint4*>(to) = made;
#endif
                    }
#else
                    unsigned made[2][2];
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        made[i][0] = turned(sum[i][0]), made[i][1] = turned(sum[i][1]);
                        if (has_output && static_cast<unsigned>(first_row + row + i) < static_cast<unsigned>(rows)) {
                            Y* const at = to + i * out_size * stored_channels;
#if FP8_Y
                            *reinterpret_cast<unsigned*>(at) = to_e4m3x4(made[i][0], made[i][1]);
                            if (channel + 8 >= channels && channels & 8) *reinterpret_cast<unsigned*>(at + 8) = 0u;
#else
                            *reinterpret_cast<uint2*>(at) = make_uint2(made[i][0], made[i][1]);
#endif
                        }
                    }
#endif
#if IMG_CHANNELS
                    unsigned pixels[4];  // a left factor: pixels of both rows by channels
#if STORES_MATRICES
                    ldmatrix_x4(
                        pixels, shared_address(turning + matrix % 2 * (8 * PIXEL) + place * PIXEL + half_of(matrix / 2, place)));
#else
                    pixels[0] = made[0][0], pixels[1] = made[1][0], pixels[2] = made[0][1], pixels[3] = made[1][1];
#endif
                    float rgb[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                    mma_m16n8k16(rgb, pixels, rgb_of[0], rgb_of[1]);
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const int at = first_row + row + i;
                        if (!has_rgb || static_cast<unsigned>(at) >= static_cast<unsigned>(rows)) continue;
                        float* const to_rgb = rgb_picture + (rgb_corner + at * out_size * IMG_CHANNELS);
                        to_rgb[0] = rgb[2 * i];
                        if (IMG_CHANNELS % 2 == 0 || 2 * word + 1 < IMG_CHANNELS) to_rgb[1] = rgb[2 * i + 1];
                    }
#endif
                }
            }
            if (pass + 1 < PASSES) __syncthreads();  // before `kept` is overwritten
        }
    }
}
