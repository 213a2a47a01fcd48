// The activation between two filters (gpu_backend/ops/filtered_lrelu.py) on tensor cores, times the style of the
// convolution that reads the result. A filter of few taps along an axis is the product with a band of a matrix:
//
//     16 activated samples   = BAND (16 x 16) * the WINDOW samples that they are made of
//     8 samples of output    = BAND (8 x 32)  * 32 activated ones, of which 26 count
//
// Filters have six taps a phase before the activation; the one after it has twelve, halves each axis, and is a product of
// both axes. With t counting the samples that are activated, s = t + PHASE, an axis takes
//     u[t] = sum_i up_taps[s % UP][i] x[first + s / UP - i]     i = 0 .. 5, x is 0 outside
// A block walks down a strip of TILES * 16 activated columns, 16 channels; a warp owns 16 of the columns. A step is 16
// activated rows:
//     NEW samples of a column arrive       in shared memory, copied STAGES steps ahead
//     -> filtered along the row            `ring`, the warp's own
//     -> filtered along the column, activated, filtered along the column     in registers: a sum is the next one's factor
//     -> 8 rows of output, all columns     `kept`
//     -> filtered along the row            in registers, to y, by all warps but the last
// With RADIAL the filter after the activation is the same in all directions, and no product of two:
//     -> filtered along the column, activated         in registers
//     -> 16 activated rows, all columns    `kept`
//     -> for each row of output that one of them adds to, filtered along the row with the filter's row
// Pixels are 32 bytes in shared memory, of every second four the halves are exchanged: eight in a row meet all banks, and
// so do eight in a column, rows being 16 bytes longer than they need. In `ring` and `kept` the first half of a pixel holds
// the even words of its channels, the second the odd ones, so that a thread stores two neighbours.
//
// Macros: UP 2|4, PHASE, RADIAL, TILES, STAGES, MIN_BLOCKS.
// bands: words of each lane, gains in them, for bands of 8 rows by 16 in two halves: 2 of activated samples; the same once
// more, since as first factors they need other registers and would be copied for every product; 2 of output, or 2 for each
// of the first six rows of a filter that is the same in all directions.
// first_x, first_y: x's sample at i = 0 of t = -PHASE. segment: rows of output of a block, a multiple of 8.
// Grid: blocks of channels, strips x segments, pictures.
#define HALF 1
#define ACTIVATION 2
// part: types
// part: activation
// part: copies
// part: half_products

#define TAPS 6
#define CHANNELS 16
#define PIXEL (2 * CHANNELS)            // bytes
#define NEW (16 / UP)                   // samples of an axis that 16 activated ones have of their own
#define OLD 6                           // that they share with those before
#define WINDOW (OLD + NEW)
#define LEAD (8 / NEW)                  // steps that arrive before the first that is activated; OLD + 2 rows
#define RING (8 + NEW)                  // rows
#define RING_PITCH (16 * PIXEL + 16)
#define KEPT_ROWS (RADIAL ? 16 : 8)
#define DOWN_ROWS (RADIAL ? TAPS : 1)
#define KEPT_PITCH (TILES * 16 * PIXEL + 16)
#define COLUMNS (NEW * (TILES - 1) + WINDOW)
#define SUMS (RADIAL ? TAPS : 16)        // under way: of rows of output, the newest first; of 8 rows in a column
#define THREADS (32 * TILES)
#define WIDTH (8 * (TILES - 1))         // of a strip, in outputs
#define STAGE_NBYTES (NEW * COLUMNS * PIXEL)
#define ROW_CHUNKS (COLUMNS * 2)        // 16 bytes each
#define ROWS_AT_ONCE (THREADS / ROW_CHUNKS < NEW ? THREADS / ROW_CHUNKS : NEW)
#define AT_ONCE 4                       // columns, whose products do not wait for one another

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

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) filtered_lrelu(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ next_style, const unsigned* __restrict__ bands,
    int in_size, int out_size, int channels, int style_stride, int first_x, int first_y, int segment, unsigned bound) {
    extern __shared__ float4 shared[];
    unsigned char* const stages = reinterpret_cast<unsigned char*>(shared);
    unsigned char* const kept = stages + STAGES * STAGE_NBYTES;
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    unsigned char* const ring = kept + KEPT_ROWS * KEPT_PITCH + warp * (RING * RING_PITCH);

    const int strips = (out_size + WIDTH - 1) / WIDTH;
    const int x0 = static_cast<int>(blockIdx.y) % strips * WIDTH, y0 = static_cast<int>(blockIdx.y) / strips * segment;
    const int rows = min(segment, out_size - y0);
    const size_t sample = blockIdx.z;
    const int steps = LEAD + (rows + 7) / 8 + 1;

    unsigned up[2][2], up_both[4], down[DOWN_ROWS][2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        up[i / 2][i % 2] = bands[i * 32 + lane];
        up_both[i % 2 * 2 + i / 2] = bands[(4 + i) * 32 + lane];
#pragma unroll
        for (int row = 0; row < DOWN_ROWS; ++row) down[row][i / 2][i % 2] = bands[(8 + row * 4 + i) * 32 + lane];
    }

    // A thread copies one chunk of one column, and of every ROWS_AT_ONCE-th row.
    const T* const picture = x + sample * in_size * in_size * channels;
    const int copied_row = tid / ROW_CHUNKS, copied_column = tid % ROW_CHUNKS / 2, copied_chunk = tid % 2;
    const int from_column = first_x + x0 / (UP / 2) - (OLD - 1) + copied_column;
    const int from_channel = blockIdx.x * CHANNELS + copied_chunk * 8;
    int from_row = first_y + y0 / (UP / 2) - (OLD + 1) + copied_row;
    int from_place = (from_row * in_size + from_column) * channels + from_channel;
    const int to_place = (copied_row * COLUMNS + copied_column) * PIXEL + half_of(copied_chunk, copied_column);
    const bool copies = copied_row < ROWS_AT_ONCE;
    const bool is_inside = static_cast<unsigned>(from_column) < static_cast<unsigned>(in_size) && from_channel < channels;
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

    const int channel = blockIdx.x * CHANNELS + 4 * word;
    const bool has_channel = channel < channels;
    unsigned style[2] = {0x3C003C00u, 0x3C003C00u};
    if (next_style != nullptr && has_channel) {
        const float* const from = next_style + sample * style_stride + channel;
        style[0] = to_half2(from[0], from[1]);
        style[1] = to_half2(from[2], from[3]);
    }
    const int to_column = x0 + warp * 8 + quad;
    const bool has_output = has_channel && to_column < out_size;
    T* const corner = y + ((sample * out_size + y0) * out_size + to_column) * channels + channel;

    unsigned sums[SUMS][2];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sums[i][0] = sums[i][1] = 0u;
#pragma unroll
    for (int i = 0; i < STAGES; ++i) load(i);
    int ring_row = 0;  // where a step's first new row goes
    for (int step = 0; step < steps; ++step) {
        wait_copies<STAGES - 1>();
        __syncthreads();
        const unsigned char* const stage = stages + step % STAGES * STAGE_NBYTES;
#pragma unroll
        for (int row = 0; row < NEW; ++row) {
            unsigned samples[4];
            load_turned(samples, shared_address(stage + row * (COLUMNS * PIXEL) + sample_place));
#pragma unroll
            for (int chunk = 0; chunk < 2; ++chunk) {
                unsigned made[2];
                const unsigned factor[2] = {samples[2 * chunk], samples[2 * chunk + 1]};
                product(made, up_both, factor);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    *reinterpret_cast<unsigned*>(
                        ring + (ring_row + row) * RING_PITCH + (quad + 8 * i) * PIXEL + half_of(word % 2, quad) +
                        (2 * chunk + word / 2) * 4) = made[i];
                }
            }
        }
        __syncwarp();
        ring_row = ring_row + NEW == RING ? 0 : ring_row + NEW;
        if (step >= LEAD) {
            // The oldest row of the ring is the one that is written next.
            const int oldest = ring_row + window_row < RING ? ring_row + window_row : ring_row + window_row - RING;
            const unsigned char* const from = ring + oldest * RING_PITCH;
            unsigned char* const to = kept + quad * KEPT_PITCH + warp * (16 * PIXEL) + word * 4;
#pragma unroll
            for (int first = 0; first < 16; first += AT_ONCE) {
                unsigned window[AT_ONCE][4], done[AT_ONCE][KEPT_ROWS / 4];
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const int column = first + i;
                    load_turned(window[i], shared_address(from + column * PIXEL + half_of(matrix % 2, column)));
                }
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    unsigned activated[4];
#pragma unroll
                    for (int part = 0; part < 2; ++part) {
                        unsigned made[2];
                        product(made, window[i], up[part]);
                        activated[2 * part] = leaky(made[0], bound);
                        activated[2 * part + 1] = leaky(made[1], bound);
                    }
#if RADIAL
#pragma unroll
                    for (int part = 0; part < 4; ++part) done[i][part] = activated[part];
#else
                    unsigned next[2];
                    product(next, activated, down[0][0]);
                    product_plus(done[i], activated, down[0][1], sums[first + i][0], sums[first + i][1]);
                    sums[first + i][0] = next[0], sums[first + i][1] = next[1];
#endif
                }
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
#pragma unroll
                    for (int part = 0; part < KEPT_ROWS / 4; ++part) {
                        *reinterpret_cast<unsigned*>(
                            to + part / 2 * (8 * KEPT_PITCH) + (first + i) * PIXEL + half_of(part % 2, first + i)) =
                            turned(done[i][part]);
                    }
                }
            }
        }
        __syncthreads();
        load(step + STAGES);
        if (step >= LEAD && warp < TILES - 1) {
            const unsigned from = shared_address(kept + kept_place);
            // Of output; what is before the first belongs to others.
            const int first_row = (step - LEAD) * 8 - (RADIAL ? TAPS - 1 : 8);
            T* to = corner + static_cast<long long>(first_row) * out_size * channels;
#pragma unroll(RADIAL ? 8 : 4)
            for (int row = 0; row < 8; ++row) {
                unsigned samples[2][4], sum[2];
#if RADIAL
#pragma unroll
                for (int odd = 0; odd < 2; ++odd) {
                    load_turned(samples[0], from + (2 * row + odd) * KEPT_PITCH);
                    load_turned(samples[1], from + (2 * row + odd) * KEPT_PITCH + 16 * PIXEL);
#pragma unroll
                    for (int i = 0; i < 2 * TAPS; ++i) {
                        const int age = i % TAPS, tap = 2 * age + odd;
                        product_plus(
                            sums[age], samples[i / TAPS], down[tap < TAPS ? tap : 2 * TAPS - 1 - tap][i / TAPS],
                            sums[age][0], sums[age][1]);
                    }
                }
                sum[0] = sums[TAPS - 1][0], sum[1] = sums[TAPS - 1][1];
#pragma unroll
                for (int age = TAPS - 1; age > 0; --age) sums[age][0] = sums[age - 1][0], sums[age][1] = sums[age - 1][1];
                sums[0][0] = sums[0][1] = 0u;
#else
                load_turned(samples[0], from + row * KEPT_PITCH);
                load_turned(samples[1], from + row * KEPT_PITCH + 16 * PIXEL);
                product(sum, samples[0], down[0][0]);
                product_plus(sum, samples[1], down[0][1], sum[0], sum[1]);
#endif
                uint2 value;
                value.x = multiply_add2(turned(sum[0]), style[0], 0u);
                value.y = multiply_add2(turned(sum[1]), style[1], 0u);
                if (has_output && static_cast<unsigned>(first_row + row) < static_cast<unsigned>(rows)) {
                    *reinterpret_cast<uint2*>(to) = value;
                }
                to += out_size * channels;
            }
        }
    }
}
