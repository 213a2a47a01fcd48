// The activation between two filters (gpu_backend/ops/filtered_lrelu.py), on two channels of fp16 a word, times the style
// of the convolution that reads the result. Filters have six taps a phase; the one after the activation halves each axis.
//
// With t counting the samples that are activated and g = floor((t + PHASE) / UP) groups of them, PHASE their place in
// the first group, an axis takes
//     u[t] = sum_i up_taps[(t + PHASE) % UP][i] x[first + g - i]           i = 0 .. 5, x is 0 outside
// so that a thread that owns a group needs six samples for its UP results. A block walks down a strip of GROUPS groups of
// columns, WORDS words of channels each; a thread owns one group of WIDE words. Row by row it filters along the row, keeps
// six rows of that in registers and filters along the column, UP rows a row. What follows each sum of `down` is kept as
// six sums that are under way, of which one is complete every second row:
//     RADIAL 0   along the column in the same registers, then through shared memory along the row
//     RADIAL 1   the activated rows go through shared memory; a filter that is the same in all directions is folded: both
//                ends of a row are added before they are multiplied
// Copies of rows run AHEAD steps before their use; a step is STEP_ROWS rows of groups. One barrier a step: what a step
// leaves in shared memory is used after the barrier of the next.
//
// Macros: UP 2|4, PHASE, RADIAL, WORDS 4|8, GROUPS (times WORDS / WIDE a multiple of 32), MIN_BLOCKS.
// Taps are arguments, each twice in a word, so that they lie in the constant bank; gains are in them:
//     u<r><i>   phase r, tap i of the filter before
//     RADIAL 0: d<p><i>  tap 2 i + p of the filter after         RADIAL 1: d<e><i>  row e, column i of its first quarter
// first_x, first_y: x's sample at i = 0 of the first group. segment: rows of output of a block, even.
// Grid: blocks of channels, so that those of a pixel run together and a sector is not fetched and written twice; strips x
// segments; pictures.
#define HALF 1
#define ACTIVATION 2
// part: types
// part: activation
// part: copies
// part: halves

#define TAPS 6
#define WIDE 2                                    // words of a thread
#define STEP_ROWS (4 / UP)
#define AHEAD 3
#define STAGES (AHEAD + 1)
#define LANES (WORDS / WIDE)                       // threads that share a group
#define THREADS (GROUPS * LANES)
#define COLUMNS (GROUPS + TAPS - 1)               // samples of a row that a block reads
#define OUTPUTS (UP / 2)                          // of a thread, neighbours in a row
#define WIDTH (((UP * GROUPS - 2 * TAPS - PHASE) / 2 + 1) / OUTPUTS * OUTPUTS)  // of a strip, in outputs
#define FIRST_ROW (-(TAPS - 1) - (PHASE + 1) / 2)  // of the output, that the first activated row adds to
#define NEEDED (2 * TAPS + 2 * (OUTPUTS - 1))     // activated samples of a row, for the outputs of a thread
#define KEPT_GROUPS (GROUPS + (NEEDED - 1 + PHASE) / UP)  // the last are read by threads that have no output, whatever they hold
#define KEPT_ROWS (STEP_ROWS * (RADIAL ? UP : OUTPUTS))    // that a step leaves in shared memory
#define CHUNKS (WORDS / 4)                         // 16 bytes each
#define TURNS ((STEP_ROWS * COLUMNS * CHUNKS + THREADS - 1) / THREADS)

#define SIX(name) unsigned name##0, unsigned name##1, unsigned name##2, unsigned name##3, unsigned name##4, unsigned name##5
#define ROW(name) {name##0, name##1, name##2, name##3, name##4, name##5}
#if UP == 4
#define UP_ARGUMENTS SIX(u0), SIX(u1), SIX(u2), SIX(u3)
#define UP_ROWS {ROW(u0), ROW(u1), ROW(u2), ROW(u3)}
#else
#define UP_ARGUMENTS SIX(u0), SIX(u1)
#define UP_ROWS {ROW(u0), ROW(u1)}
#endif
#if RADIAL
#define DOWN_ARGUMENTS SIX(d0), SIX(d1), SIX(d2), SIX(d3), SIX(d4), SIX(d5)
#define DOWN_ROWS {ROW(d0), ROW(d1), ROW(d2), ROW(d3), ROW(d4), ROW(d5)}
#else
#define DOWN_ARGUMENTS SIX(d0), SIX(d1)
#define DOWN_ROWS {ROW(d0), ROW(d1)}
#endif

// Neighbouring words of a thread.
struct __align__(4 * WIDE) Words {
    unsigned at[WIDE];
};

__device__ __forceinline__ Words none() {
    Words v;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) v.at[i] = 0u;
    return v;
}

__device__ __forceinline__ Words add_times(const Words& a, unsigned factor, const Words& sum) {
    Words v;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) v.at[i] = multiply_add2(a.at[i], factor, sum.at[i]);
    return v;
}

// Leaky, the gain already in them, and held within the bound.
__device__ __forceinline__ Words leaky(Words v, unsigned bound) {
#pragma unroll
    for (int i = 0; i < WIDE; ++i) {
#if LEVEL >= 800
        v.at[i] = activated2(v.at[i], bound);
#else
        float low, high;
        from_half2(v.at[i], low, high);
        const float most = from_half((half_bits)(bound & 0xffffu));
        v.at[i] = to_half2(bounded(activate(low), most), bounded(activate(high), most));
#endif
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) filtered_lrelu(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ next_style, int in_size, int out_size,
    int channels, int style_stride, int first_x, int first_y, int segment, unsigned bound, UP_ARGUMENTS, DOWN_ARGUMENTS) {
    __shared__ __align__(16) Words ring[STAGES][STEP_ROWS][COLUMNS][LANES];
    __shared__ __align__(16) Words kept[2][KEPT_ROWS][UP][KEPT_GROUPS][LANES];
    const unsigned up_taps[UP][TAPS] = UP_ROWS;
    const unsigned down_taps[RADIAL ? 6 : 2][TAPS] = DOWN_ROWS;

    const int tid = threadIdx.x, lane = tid % LANES, group = tid / LANES;
    const int strips = (out_size + WIDTH - 1) / WIDTH;
    const int x0 = static_cast<int>(blockIdx.y) % strips * WIDTH, y0 = static_cast<int>(blockIdx.y) / strips * segment;
    const int rows = min(segment, out_size - y0);
    const int channel = (blockIdx.x * WORDS + lane * WIDE) * 2;
    const bool has_channel = channel < channels;
    const size_t sample = blockIdx.z;
    Words style;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) {
        style.at[i] = 0x3C003C00u;
        if (next_style != nullptr && has_channel) {
            const float* const from = next_style + sample * style_stride + channel + 2 * i;
            style.at[i] = to_half2(from[0], from[1]);
        }
    }
    // Rows of x: those before the first group's own, then one a group.
    const int groups = (2 * (rows - 1) + 2 * TAPS + PHASE + UP - 1) / UP;
    const int steps = (groups + TAPS - 1 + STEP_ROWS - 1) / STEP_ROWS;

    // What a thread copies in each step, and where it stores: all of it but the row stays the same.
    const T* const picture = x + sample * in_size * in_size * channels;
    const int step_stride = STEP_ROWS * in_size * channels;
    int from_row[TURNS], from_place[TURNS];
    bool is_inside[TURNS];
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int item = tid + turn * THREADS;
        const int column = first_x + x0 / OUTPUTS - (TAPS - 1) + item / CHUNKS % COLUMNS;
        const int from_channel = (blockIdx.x * WORDS + item % CHUNKS * 4) * 2;
        from_row[turn] = first_y + y0 / OUTPUTS - (TAPS - 1) + item / (CHUNKS * COLUMNS);
        from_place[turn] = (from_row[turn] * in_size + column) * channels + from_channel;
        is_inside[turn] = static_cast<unsigned>(column) < static_cast<unsigned>(in_size) && from_channel < channels;
    }
    auto load = [&](int step) {
        if (step < steps) {
#pragma unroll
            for (int turn = 0; turn < TURNS; ++turn) {
                const int item = tid + turn * THREADS;
                if (item >= STEP_ROWS * COLUMNS * CHUNKS) continue;
                const bool wanted = is_inside[turn] && static_cast<unsigned>(from_row[turn] + step * STEP_ROWS) <
                                                           static_cast<unsigned>(in_size);
                const T* const from = wanted ? picture + (from_place[turn] + step * step_stride) : x;
                copy_async(shared_address(&ring[step % STAGES][0][0][0].at[0] + item * 4), from, wanted);
            }
        }
        commit_copies();
    };
    T* const corner = y + ((sample * out_size + y0) * out_size + x0 + group * OUTPUTS) * channels + channel;
    const int columns = has_channel ? min(WIDTH, out_size - x0) - group * OUTPUTS : 0;  // from this thread's on
    auto store = [&](int row, int column, Words value) {
        if (static_cast<unsigned>(row) >= static_cast<unsigned>(rows) || column >= columns) return;
#pragma unroll
        for (int i = 0; i < WIDE; ++i) value.at[i] = multiply_add2(value.at[i], style.at[i], 0u);
        *reinterpret_cast<Words*>(corner + (row * out_size + column) * channels) = value;
    };
    // The row of output that the first of a step's rows of groups adds to first.
    auto output_row = [&](int step, int row) { return FIRST_ROW + (step * STEP_ROWS + row - (TAPS - 1)) * OUTPUTS; };

    Words filtered[UP][TAPS];  // along the row, of the last six rows, the newest first
#if RADIAL
    Words sums[OUTPUTS][TAPS];
#pragma unroll
    for (int i = 0; i < OUTPUTS * TAPS; ++i) sums[i / TAPS][i % TAPS] = none();
#else
    Words sums[UP][TAPS];
#pragma unroll
    for (int i = 0; i < UP * TAPS; ++i) sums[i / TAPS][i % TAPS] = none();
#endif
#pragma unroll
    for (int i = 0; i < UP * TAPS; ++i) filtered[i / TAPS][i % TAPS] = none();

    // What a step left in shared memory, made into output.
    auto finish = [&](int step) {
#if RADIAL
#pragma unroll
        for (int row = 0; row < STEP_ROWS; ++row) {
            if (step * STEP_ROWS + row < TAPS - 1) continue;
            int to_row = output_row(step, row);
#pragma unroll
            for (int r = 0; r < UP; ++r) {
                const bool is_odd = (r + PHASE) & 1;
                Words v[NEEDED];
#pragma unroll
                for (int m = 0; m < NEEDED; ++m) {
                    v[m] = kept[step & 1][row * UP + r][(PHASE + m) % UP][group + (PHASE + m) / UP][lane];
                }
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) {
#pragma unroll
                    for (int m = 0; m < TAPS; ++m) {
                        const Words both = add_times(v[2 * o + m], 0x3C003C00u, v[2 * o + 2 * TAPS - 1 - m]);
#pragma unroll
                        for (int s = 0; s < TAPS; ++s) {
                            const int tap = is_odd ? 2 * s : 2 * s + 1;
                            sums[o][s] = add_times(both, down_taps[tap < TAPS ? tap : 2 * TAPS - 1 - tap][m], sums[o][s]);
                        }
                    }
                }
                if (is_odd) {
#pragma unroll
                    for (int o = 0; o < OUTPUTS; ++o) {
                        store(to_row, o, sums[o][0]);
#pragma unroll
                        for (int s = 0; s + 1 < TAPS; ++s) sums[o][s] = sums[o][s + 1];
                        sums[o][TAPS - 1] = none();
                    }
                    ++to_row;
                }
            }
        }
#else
#pragma unroll
        for (int row = 0; row < KEPT_ROWS; ++row) {
            Words total[OUTPUTS];
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o) total[o] = none();
#pragma unroll
            for (int m = 0; m < NEEDED; ++m) {
                const Words v = kept[step & 1][row][(PHASE + m) % UP][group + (PHASE + m) / UP][lane];
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) {
                    const int tap = 2 * TAPS - 1 - (m - 2 * o);
                    if (tap >= 0 && tap < 2 * TAPS) total[o] = add_times(v, down_taps[tap & 1][tap >> 1], total[o]);
                }
            }
#pragma unroll
            for (int o = 0; o < OUTPUTS; ++o) {
                store(output_row(step, row / OUTPUTS) + row % OUTPUTS, o, total[o]);
            }
        }
#endif
    };

#pragma unroll
    for (int i = 0; i < AHEAD; ++i) load(i);
    for (int step = 0; step < steps; ++step) {
        wait_copies<AHEAD - 1>();
        __syncthreads();
        load(step + AHEAD);
        if (step > 0) finish(step - 1);
        int done = 0;
#pragma unroll
        for (int row = 0; row < STEP_ROWS; ++row) {
            Words samples[TAPS];
#pragma unroll
            for (int i = 0; i < TAPS; ++i) samples[i] = ring[step % STAGES][row][group + TAPS - 1 - i][lane];
#pragma unroll
            for (int c = 0; c < UP; ++c) {
#pragma unroll
                for (int i = TAPS - 1; i > 0; --i) filtered[c][i] = filtered[c][i - 1];
                Words total = add_times(samples[0], up_taps[c][0], none());
#pragma unroll
                for (int i = 1; i < TAPS; ++i) total = add_times(samples[i], up_taps[c][i], total);
                filtered[c][0] = total;
            }
            if (step * STEP_ROWS + row < TAPS - 1) {
                done += OUTPUTS;
                continue;
            }
#pragma unroll
            for (int r = 0; r < UP; ++r) {
                const bool is_odd = (r + PHASE) & 1;
#pragma unroll
                for (int c = 0; c < UP; ++c) {
                    Words v = add_times(filtered[c][0], up_taps[r][0], none());
#pragma unroll
                    for (int i = 1; i < TAPS; ++i) v = add_times(filtered[c][i], up_taps[r][i], v);
                    v = leaky(v, bound);
#if RADIAL
                    kept[step & 1][row * UP + r][c][group][lane] = v;
#else
#pragma unroll
                    for (int s = 0; s < TAPS; ++s) sums[c][s] = add_times(v, down_taps[is_odd ? 0 : 1][s], sums[c][s]);
                    if (is_odd) {
                        kept[step & 1][done][c][group][lane] = sums[c][0];
#pragma unroll
                        for (int s = 0; s + 1 < TAPS; ++s) sums[c][s] = sums[c][s + 1];
                        sums[c][TAPS - 1] = none();
                    }
#endif
                }
                done += is_odd;
            }
        }
    }
    __syncthreads();
    finish(steps - 1);
}
