// Styles and demodulation in first_layers.cu, as in styles.cu: of the first layers in two steps, of which the second is each block's for its own
// channels; of later layers item by item. A warp has four rows of the table at a time, or eight. Styles are passed on as fresh words.
// Uses constants, shared memory, Block and Memory of the kernel.
#pragma once
#include "parts/rows.cuh"
#include "parts/fresh_words.cuh"

// A lane's columns of a vector: 8 of each group of the row that it has.
struct Vector {
    float v[CHUNKS][8];
};

// Eight numbers of w, or of a style that may not be there yet.
__device__ __forceinline__ Vector load_vector(const float* from, int columns, int lane) {
    Vector vector = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int column = 8 * (lane + 32 * c);
        if (column < columns) load_many(from + column, vector.v[c]);
    }
    return vector;
}
__device__ __forceinline__ Vector load_fresh_vector(const float* from, int columns, int lane, unsigned tag) {
    uint4 words[CHUNKS][2];
    bool are_fresh;
    do {
        are_fresh = true;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int column = 8 * (lane + 32 * c) + 4 * i;
                words[c][i] = make_uint4(0u, 0u, 0u, 0u);
                if (column < columns) {
                    words[c][i] = load_relaxed(from + column);
                    are_fresh = are_fresh && is_fresh(words[c][i], tag);
                }
            }
        }
    } while (__any_sync(0xffffffffu, !are_fresh));
    Vector vector;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint4 four = without_tags(words[c][i]);
            vector.v[c][4 * i] = __uint_as_float(four.x), vector.v[c][4 * i + 1] = __uint_as_float(four.y);
            vector.v[c][4 * i + 2] = __uint_as_float(four.z), vector.v[c][4 * i + 3] = __uint_as_float(four.w);
        }
    }
    return vector;
}

// The largest magnitude. Bits of magnitudes compare like numbers, and NaN is the largest.
__device__ __forceinline__ float peak_of(const Vector& vector) {
    unsigned peak = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#pragma unroll
        for (int i = 0; i < 8; ++i) peak = max(peak, __float_as_uint(vector.v[c][i]) & 0x7fffffffu);
    }
    return __uint_as_float(__reduce_max_sync(0xffffffffu, peak));
}

template <bool SQUARED>
__device__ __forceinline__ float dot(const Vector& vector, const uint4 (&words)[CHUNKS]) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        float w[8];
        from_half2(words[c].x, w[0], w[1]), from_half2(words[c].y, w[2], w[3]), from_half2(words[c].z, w[4], w[5]), from_half2(words[c].w, w[6], w[7]);
#pragma unroll
        for (int i = 0; i < 8; ++i) sum = fmaf(w[i], SQUARED ? vector.v[c][i] * vector.v[c][i] : vector.v[c][i], sum);
    }
    return sum;
}

__device__ __forceinline__ float normalised(float style, float peak) { return peak == 0.0f ? 0.0f : style / peak; }
__device__ __forceinline__ float demodulation(float sum, float2 term, float peak) { return rsqrtf(fmaf(sum, term.x, EPSILON)) * peak * term.y; }

enum : int {
    FIRST_SLOTS = slot_of(LAYERS) + HAS_NEXT,  // of the first layers, and of the convolution after them
    FIRST_ITEMS = FIRST_SLOTS * CHANNELS / ROWS,
    AFFINE_GROUPS = W_DIM / 8,
};

// Four rows of the styles that the first layers need.
__device__ __forceinline__ void make_first_styles(const Memory& memory, const Block& block, int item) {
    const int first = ROWS * item, lane = block.lane;
    uint4 words[ROWS][CHUNKS];
    load_rows(memory.style_rows + static_cast<long long>(first) * AFFINE_GROUPS, AFFINE_GROUPS, 0, true, words);
    const int row = first + lane % ROWS, slot = first / CHANNELS;
    const float2 term = memory.terms[row];
    const Vector w = load_vector(memory.ws + __float_as_int(memory.table[LAYERS * TABLE_WIDTH + slot]) * W_DIM, W_DIM, lane);
    float sums[SUMS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = dot<false>(w, words[r]);
    const float style = fmaf(total_over_lanes(sums), term.x, term.y);
    if (lane < ROWS) {
        store_relaxed(memory.raw + row, tagged(style, block.tag));
        if (slot % 3 == 1) memory.styles[row] = style;  // of toRGB
    }
}

// Bias, noise, gain and clamp of all layers. All threads that compute layers call this.
__device__ __forceinline__ void load_numbers(const Memory& memory, const Block& block) {
    enum : int { PIXELS = (noise_offset(LAYERS) - LAYERS * CHANNELS) / 2 };
#pragma unroll
    for (int turn = 0; turn < (PIXELS + THREADS - 1) / THREADS; ++turn) {
        int layer = 0, side = 4, pixel = turn * THREADS + block.tid, offset = LAYERS * CHANNELS;
        if (pixel >= PIXELS) continue;
        while (pixel >= side * side / 2) {
            pixel -= side * side / 2, offset += side * side;
            side = side_of(++layer);
        }
        const int place = block.half * (side * side / 2) + pixel;
        const float stored = memory.values[offset + place];  // under way with the strength; where noise is no stored number, not used
        const LayerNoise layer_noise(memory.values + offset, memory.noise_source, memory.noise_gain + layer, memory.table[layer * TABLE_WIDTH], layer);
        noises[layer][pixel] = layer_noise.strength == 0.0f ? 0.0f : layer_noise.is_plain ? layer_noise.strength * stored : layer_noise.at(place);
    }
    for (int i = block.tid; i < 2 * LAYERS; i += THREADS) layer_numbers[i / 2][i % 2] = memory.table[i / 2 * TABLE_WIDTH + 1 + i % 2];
    for (int i = block.tid; i < 8 * LAYERS; i += THREADS) constants[i / 8][1][i % 8] = memory.values[i / 8 * CHANNELS + block.group * 8 + i % 8];
}

// Of eight sums of each lane, the sum over all lanes of number lane % 8.
template <int COUNT>
__device__ __forceinline__ void add_lanes(float (&sums)[8], int lane) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const bool upper = lane & COUNT;
        const float kept = upper ? sums[i + COUNT] : sums[i], given = upper ? sums[i] : sums[i + COUNT];
        sums[i] = kept + __shfl_xor_sync(0xffffffffu, given, COUNT);
    }
}

// What the block needs of the styles of a layer, or of the convolution after the last one: demodulation and toRGB's weights of its
// eight channels, their style for the layer before; of the first layer all styles. One warp makes them, since many that read the same lines
// of memory wait for each other. Rows for demodulation are under way while styles are made.
struct OwnStyles {
    uint4 rows[8][CHUNKS];
    float rgb_weight[IMG_CHANNELS];
    float2 term;

    __device__ __forceinline__ OwnStyles(const Memory& memory, const Block& block, int layer) {
        const int lane = block.lane, first = block.group * 8;
        const bool is_layer = layer < LAYERS;
        const uint4* const squares = memory.style_rows + (is_layer ? __float_as_int(memory.table[layer * TABLE_WIDTH + 3]) : 0) + first * (CHANNELS / 8);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) rows[r][c] = load_once(squares + r * (CHANNELS / 8) + lane + 32 * c, is_layer && lane + 32 * c < CHANNELS / 8);
        }
        const int channel = first + lane % 8;
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) rgb_weight[c] = has_rgb(layer) ? memory.rgb_weight()[(layer / 2 * IMG_CHANNELS + c) * CHANNELS + channel] : 0.0f;
        term = memory.terms[memory.style_width + (is_layer ? layer : 0) * CHANNELS + channel];
    }

    __device__ __forceinline__ static bool has_rgb(int layer) { return layer < LAYERS && layer % 2 == 0; }

    __device__ __forceinline__ void make(const Memory& memory, const Block& block, int layer) const {
        const int lane = block.lane, channel = block.group * 8 + lane % 8;
        const bool is_layer = layer < LAYERS;
        if (is_layer || HAS_NEXT) {
            const int slot = slot_of(layer);
            const Vector s = load_fresh_vector(memory.raw + slot * CHANNELS, CHANNELS, lane, block.tag);
            const float peak = peak_of(s);
            if (layer == 0) {
#pragma unroll
                for (int c = 0; c < CHUNKS; ++c) {
                    if (lane + 32 * c >= CHANNELS / 8) continue;
                    float v[8];
#pragma unroll
                    for (int k = 0; k < 8; ++k) v[k] = normalised(s.v[c][k], peak);
                    store_many(first_styles + 8 * (lane + 32 * c), v);
                }
                __syncwarp();
                if (lane == 0) arrive(shared_address(&first_barrier));
            }
            float own = 0.0f;
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                const float v = __shfl_sync(0xffffffffu, block.group < 32 ? s.v[0][k] : s.v[CHUNKS - 1][k], block.group & 31);
                own = lane == k ? v : own;
            }
            float sums[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) sums[r] = dot<true>(s, rows[r]);
            add_lanes<4>(sums, lane), add_lanes<2>(sums, lane), add_lanes<1>(sums, lane);
            float total = sums[0];
            total += __shfl_xor_sync(0xffffffffu, total, 8);
            total += __shfl_xor_sync(0xffffffffu, total, 16);
            if (lane < 8) {
                const float style = normalised(own, peak);
                if (layer > 0) constants[layer - 1][2][lane] = style;
                if (block.half == 0) memory.styles[slot * CHANNELS + channel] = style;
                if (is_layer) {
                    const float demod = demodulation(total, term, peak);
                    constants[layer][0][lane] = demod;
                    if (block.half == 0) memory.demod[layer * CHANNELS + channel] = demod;
                }
                if (has_rgb(layer)) {
                    const float style_of_rgb = load_fresh(memory.raw + rgb_slot_of(layer) * CHANNELS + channel, block.tag);
#pragma unroll
                    for (int c = 0; c < IMG_CHANNELS; ++c) constants[layer][3 + c][lane] = rgb_weight[c] * style_of_rgb;
                }
            }
        } else if (lane < 8) {
            constants[LAYERS - 1][2][lane] = 1.0f;
        }
        __syncwarp();
        if (lane == 0 && is_layer) arrive(shared_address(&constants_barriers[layer]));
        if (lane == 0 && layer > 0) arrive(shared_address(&constants_barriers[layer - 1]));
    }
};

// Styles and demodulation of the later layers.
__device__ __forceinline__ void make_later_styles(const Memory& memory, const Block& block, int warp, int warps) {
    const int lane = block.lane;
#pragma unroll 1
    for (int i = warp; i < memory.item_count; i += warps) {
        const int4 i0 = memory.items[2 * i], i1 = memory.items[2 * i + 1];
        const int groups = i0.x, source = i0.w, columns = i1.x, to = i1.y, kind = i1.z;  // kind: -2 toRGB's style, -1 a style, or which
        uint4 words[ROWS][CHUNKS];                                                       // item of how many that demodulate
        load_rows(memory.style_rows + i0.y, groups, 0, true, words);
        const float2 term = memory.terms[i0.z + lane % ROWS];
        float sums[SUMS];
        if (kind < 0) {
            const Vector w = load_vector(memory.ws + source, columns, lane);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r] = dot<false>(w, words[r]);
            const float style = fmaf(total_over_lanes(sums), term.x, term.y);
            if (lane < ROWS && kind == -2) memory.styles[to + lane] = style;
            if (lane < ROWS && kind == -1) store_relaxed(memory.raw + to + lane, tagged(style, block.tag));
        } else {
            const Vector s = load_fresh_vector(memory.raw + source, columns, lane, block.tag);
            const float peak = peak_of(s);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r] = dot<true>(s, words[r]);
            const float total = total_over_lanes(sums);
            if (lane < ROWS) memory.demod[to + lane] = demodulation(total, term, peak);
            for (int column = kind * 32 + lane; column < columns; column += i1.w * 32) {
                memory.styles[source + column] = normalised(load_fresh(memory.raw + source + column, block.tag), peak);
            }
        }
    }
}
