// The first layers of a StyleGAN2, one picture: all styles, the convolution at 4 x 4, up-convolution and convolution at 8 x 8 and at
// 16 x 16, as one persistent kernel. One at a time, such a layer waits longer than it computes: for the launch, for its weights, for
// slices of split-K. Formulas are those of styles.cu, modulated_conv.cu and modulated_up_conv.cu.
//
// Two blocks share a group of eight output channels, one has the upper and one the lower half of the picture: no block sums for another.
// Of a layer, each of eight warps sums an eighth of the input channels; the sums of the warps are added up in shared memory. Weights are
// copied to shared memory two layers ahead. Four more warps of a block make demodulation and styles: first what the block itself needs,
// then those of all later layers, while the others compute layers. One more block adds up the pictures of toRGB, as
// parts/picture_beside.cuh does beside up-convolutions.
//
// Blocks pass on numbers through memory without barriers: the last bit of every word says whether it is of this run (parts/fresh_words.cuh),
// and a reader loads until it is. So a word is its own flag; a barrier would take three trips to the L2 cache. The price is a bit of every other
// fp16 number, as much as rounding it again. All blocks must be resident at once: the launch is cooperative.
//
// Macros:
//     CHANNELS       of all these layers, a multiple of 128, 512 at most
//     LAYERS         how many of the five, from the first on: 3 or 5
//     W_DIM          of w, a multiple of 8, 512 at most
//     HAS_NEXT       a convolution follows
//     IMG_CHANNELS   of the picture
//     ACTIVATION     see parts/activation.cuh. HALF: 1. BATCH: 1, see parts/rows.cuh
//     SHARED_NBYTES  dynamic shared memory, FirstLayersGeometry.dynamic_nbytes
//
// Dynamic shared memory:
//     weights   two slots of WEIGHT_NBYTES, taken in turns
//     x         of each warp: its input channels as planes of eight, all rows that the block needs; then its partial sums. Eight
//               pixels of a plane beside each other are in different banks. What is beyond the picture is one cell of zeros.
//               The convolution at 16 x 16 begins in the second slot of weights
//     t         of an up-convolution, fp32
// Static: of each layer what its epilogue needs (demodulation, bias, style, toRGB's weights, noise), the first styles, barriers.
//
// Pipeline of a block; "<-" waits for words of all blocks:
//     warps 0 to 7     | rows of the first styles | noise, biases | first input | layer 0 | <- layer 1 | ... | <- layer LAYERS - 1
//     warps 8 to 11    | rows of the first styles | <- demodulation, style and toRGB's weights, layer by layer | <- later styles
//     copies           | weights of layer 0       | of layer 1                  | of layer 2, after the products of layer 0 | ...
// and of a layer:
//     each of 8 warps  | <- activations -> x | products with an eighth of the channels | sums -> x
//     all 8 together                                                                             | sums of the warps (-> t -> filter) | epilogue -> `kept`
// One more block: <- parts of toRGB -> picture at 4 x 4 -> picture at 8 x 8, beside later styles.
//
// `kept`, from run to run: activations between layers, (CHANNELS / 8, side, side, 8) each; toRGB's parts at 4 x 4 and 8 x 8; styles.
// `counters`: blocks that have ended, 0 before and after a run; number of the run.
// `table`, of each layer, 4 numbers: strength of the noise, gain and clamp; where its rows of `style_rows` for demodulation begin.
// Then for each style slot of the first layers, the row of w.
// `values`: biases of the layers, their stored noise, toRGB's weights of the blocks, their biases, taps.
// `items`: styles of the later layers, four rows an item; see style_items in gpu_backend/cuda/launches/first_layers.py.
enum : int { ROWS = 4 };  // of `style_rows`, for a warp
#include "parts/types.cuh"
#include "parts/tensor_core.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/tma.cuh"
#include "parts/previous_kernel.cuh"
#define EPSILON 1e-8f

enum : int {
    WARPS = 8,        // that compute layers
    STYLE_WARPS = 4,  // that make styles
    ALL_WARPS = WARPS + STYLE_WARPS,
    THREADS = 32 * WARPS,
    GROUPS = CHANNELS / 8,
    WARP_GROUPS = GROUPS / WARPS,  // planes of input channels of a warp
    STEPS = WARP_GROUPS / 2,       // of sixteen input channels
    WEIGHT_NBYTES = 9 * 16 * CHANNELS,
    CELL_NBYTES = 16,              // of a pixel in a plane
    PICTURES = LAYERS / 2,
    RGBS = (LAYERS + 1) / 2,
    TABLE_WIDTH = 4,
    CONSTANTS = 3 + IMG_CHANNELS,  // of an output channel: demodulation, bias, next style, toRGB's weights times styles
};
static_assert(LAYERS == 3 || LAYERS == 5, "the last layer is a convolution, and each warp of styles has one");
static_assert(CHANNELS % 128 == 0 && CHANNELS <= 512 && W_DIM % 8 == 0 && W_DIM <= 512, "a lane has at most two groups of eight of a row");

__device__ __forceinline__ constexpr int larger(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ constexpr int side_of(int layer) { return 4 << (layer + 1) / 2; }
// Style slots are in the order of the network: in each block its convolutions, then toRGB.
__device__ __forceinline__ constexpr int slot_of(int layer) { return layer + (layer + 1) / 2; }
__device__ __forceinline__ constexpr int rgb_slot_of(int layer) { return slot_of(layer) + 1; }

// The layer of a number.
template <int LAYER>
struct Shape {
    static constexpr bool IS_UP = LAYER % 2 == 1;
    static constexpr int SIDE = side_of(LAYER);
    static constexpr int INPUT = IS_UP ? SIDE / 2 : SIDE;
    static constexpr int X_ROWS = INPUT / 2 + (IS_UP ? 2 : 1);  // that a block needs, within the picture
    static constexpr int CELLS = X_ROWS * INPUT;                // of a plane
    static constexpr int STEP_NBYTES = 2 * CELLS * CELL_NBYTES;
    static constexpr int TURNS = (2 * CELLS + 31) / 32;         // cells of a lane, for a step
    static constexpr int POSITIONS = IS_UP ? (INPUT / 2 + 2) * (INPUT + 1) : INPUT * INPUT / 2;
    static constexpr int FRAGMENTS = (POSITIONS + 15) / 16;
    static constexpr int PHASES = IS_UP ? 4 : 1;
    static constexpr int T_COLUMNS = 2 * (INPUT + 1);
    static constexpr int SUMS_NBYTES = PHASES * POSITIONS * 32;  // of a warp
    static constexpr int AREA_NBYTES = larger(STEPS * STEP_NBYTES, SUMS_NBYTES);
    static constexpr int X_OFFSET = SIDE == 16 && !IS_UP ? WEIGHT_NBYTES : 2 * WEIGHT_NBYTES;
};
template <int LAYER>
__device__ __forceinline__ constexpr int x_end() {
    return Shape<LAYER>::X_OFFSET + WARPS * Shape<LAYER>::AREA_NBYTES;
}
enum : int {
    T_OFFSET = LAYERS > 3 ? larger(x_end<1>(), x_end<3>()) : LAYERS > 1 ? x_end<1>() : 0,
    T_NBYTES = LAYERS > 3 ? Shape<3>::SUMS_NBYTES : LAYERS > 1 ? Shape<1>::SUMS_NBYTES : 0,
};
static_assert(T_OFFSET + T_NBYTES <= SHARED_NBYTES && x_end<0>() <= SHARED_NBYTES && (LAYERS < 3 || x_end<2>() <= SHARED_NBYTES) &&
                  (LAYERS < 5 || x_end<4>() <= SHARED_NBYTES),
              "weights, x and t lie in the launch's shared memory");

// Where things begin in `kept`, in bytes, and in `values`, in floats.
__device__ __forceinline__ constexpr int planes_offset(int layer) {
    int offset = 0;
    for (int before = 0; before < layer; ++before) offset += GROUPS * side_of(before) * side_of(before) * CELL_NBYTES;
    return offset;
}
__device__ __forceinline__ constexpr int parts_offset(int picture) {
    int offset = planes_offset(LAYERS - 1);
    for (int before = 0; before < picture; ++before) offset += GROUPS * (16 << 2 * before) * IMG_CHANNELS * 4;
    return offset;
}
__device__ __forceinline__ constexpr int noise_offset(int layer) {
    int offset = LAYERS * CHANNELS;
    for (int before = 0; before < layer; ++before) offset += side_of(before) * side_of(before);
    return offset;
}

__shared__ __align__(8) unsigned long long weight_barriers[2];
__shared__ __align__(8) unsigned long long constants_barriers[LAYERS];
__shared__ __align__(16) float constants[LAYERS][CONSTANTS][8];
__shared__ float noises[LAYERS][128];
__shared__ float layer_numbers[LAYERS][2];  // gain, clamp
__shared__ __align__(16) float first_styles[CHANNELS];
__shared__ __align__(8) unsigned long long first_barrier;  // of these
__shared__ __align__(16) uint4 zero_cell;   // what lies around the picture

struct Block {
    int tid, lane, warp, group, half;
    unsigned pool;  // address in shared memory
    unsigned tag;   // last bit of words of this run
};

struct Memory {
    const unsigned char* weight;
    const float* ws;
    const uint4* style_rows;
    const float2* terms;
    const int4* items;
    const float* constant;
    const float* values;
    const float* table;
    const float* noise_gain;
    const unsigned* noise_source;
    unsigned char* kept;
    float* raw;  // styles, in `kept`
    float* styles;
    float* demod;
    half_bits* y;
    float* rgb_parts;
    half_bits* observed;
    int observed_layer, item_count, style_width;

    __device__ __forceinline__ const float* rgb_weight() const { return values + noise_offset(LAYERS); }
};

// A barrier of the warps that compute layers.
__device__ __forceinline__ void sync_layers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

#include "parts/fresh_words.cuh"
#include "parts/first_styles.cuh"

// ---- Layers -----------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint2 load_two_words(unsigned address) {
    uint2 words;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(address));
    return words;
}
__device__ __forceinline__ void store_cell(unsigned address, const uint4& words) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w) : "memory");
}

__device__ __forceinline__ void copy_weights(const Block& block, const unsigned char* weight, int layer) {
    const unsigned barrier = shared_address(&weight_barriers[layer & 1]);
    expect_bytes(barrier, WEIGHT_NBYTES);
#pragma unroll
    for (int i = 0; i < WARPS; ++i) {
        bulk_load(block.pool + (layer & 1) * WEIGHT_NBYTES + i * (WEIGHT_NBYTES / WARPS),
                  weight + (static_cast<long long>(layer) * GROUPS + block.group) * WEIGHT_NBYTES + i * (WEIGHT_NBYTES / WARPS),
                  WEIGHT_NBYTES / WARPS, barrier);
    }
}

// The input of a layer, on its way from memory to a warp's planes.
template <int LAYER>
struct Input {
    typedef Shape<LAYER> S;
    static constexpr int GAP_NBYTES = (S::INPUT * S::INPUT - S::CELLS) * CELL_NBYTES;  // between the block's rows of two planes
    unsigned to;                 // of a lane's first cell in a step
    const unsigned char* from;
    int lane;

    __device__ __forceinline__ Input(const Block& block, const unsigned char* kept)
        : to(block.pool + S::X_OFFSET + block.warp * S::AREA_NBYTES + block.lane * CELL_NBYTES),
          from(kept + (LAYER == 0 ? 0 : planes_offset(LAYER - 1)) +
               (block.warp * WARP_GROUPS * (S::INPUT * S::INPUT) + (block.half == 0 ? 0 : S::INPUT - S::X_ROWS) * S::INPUT + block.lane) * CELL_NBYTES),
          lane(block.lane) {}

    __device__ __forceinline__ bool has(int turn) const { return turn * 32 + 32 <= 2 * S::CELLS || turn * 32 + lane < 2 * S::CELLS; }

    __device__ __forceinline__ const unsigned char* source(int step, int turn) const {
        const unsigned char* const first = from + step * (2 * S::INPUT * S::INPUT * CELL_NBYTES) + turn * 512;
        if (turn * 32 + 32 <= S::CELLS) return first;
        return turn * 32 >= S::CELLS ? first + GAP_NBYTES : first + (turn * 32 + lane >= S::CELLS ? GAP_NBYTES : 0);
    }

    template <int COUNT>
    __device__ __forceinline__ void load(uint4 (&held)[COUNT], int first_step) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (has(i % S::TURNS)) held[i] = load_relaxed(source(first_step + i / S::TURNS, i % S::TURNS));
        }
    }

    // Loads again what is not there yet, and stores all to shared memory.
    template <int COUNT>
    __device__ __forceinline__ void store(uint4 (&held)[COUNT], int first_step, unsigned tag) const {
        bool are_fresh;
        do {
            are_fresh = true;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (has(i % S::TURNS) && !is_fresh(held[i], tag)) {
                    are_fresh = false;
                    held[i] = load_relaxed(source(first_step + i / S::TURNS, i % S::TURNS));
                }
            }
        } while (__any_sync(0xffffffffu, !are_fresh));
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (has(i % S::TURNS)) store_cell(to + (first_step + i / S::TURNS) * S::STEP_NBYTES + i % S::TURNS * 512, without_tags(held[i]));
        }
    }
};

// The first layer's: the constant times styles. Loads of the constant are under way while styles are made.
struct FirstInput {
    typedef Shape<0> S;
    unsigned to;
    int plane;  // of a step
    float c[STEPS][8];

    __device__ __forceinline__ FirstInput(const Memory& memory, const Block& block)
        : to(block.pool + S::X_OFFSET + block.warp * S::AREA_NBYTES + block.lane * CELL_NBYTES), plane(block.lane / S::CELLS) {
        const int pixel = block.lane % S::CELLS + (block.half == 0 ? 0 : 16 - S::CELLS);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (plane < 2) load_many(memory.constant + pixel * CHANNELS + (block.warp * WARP_GROUPS + step * 2 + plane) * 8, c[step]);
        }
    }

    __device__ __forceinline__ void make(const Block& block) {
        wait_barrier(shared_address(&first_barrier), 0);
        if (plane >= 2) return;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            float v[8];
            load_many(first_styles + (block.warp * WARP_GROUPS + step * 2 + plane) * 8, v);
#pragma unroll
            for (int k = 0; k < 8; ++k) v[k] *= c[step][k];
            store_cell(to + step * S::STEP_NBYTES, make_uint4(to_half2(v[0], v[1]), to_half2(v[2], v[3]), to_half2(v[4], v[5]), to_half2(v[6], v[7])));
        }
    }
};

// Sums of products of a step: sixteen input channels at `x`, their weights at `weights`.
template <int LAYER>
struct Sums {
    typedef Shape<LAYER> S;
    static constexpr int CHAINS = S::IS_UP || S::SIDE == 16 ? 1 : 3;  // sums of few positions would wait for each other
    static constexpr int AT_ONCE = S::FRAGMENTS < 2 ? 1 : 2;          // fragments whose loads are under way together
    float sum[CHAINS][S::PHASES][S::FRAGMENTS][4];
    unsigned own_cell[S::IS_UP ? S::FRAGMENTS : 1];  // bytes to the cell that this lane addresses: for an up-convolution that of the
                                                     // position, else that of the first tap
    unsigned is_inside[S::IS_UP ? S::FRAGMENTS : 1];  // up-convolutions: a bit for each of four cells; else for rows 0, 1, 2 and columns 0, 1, 2
    unsigned zero;

    __device__ __forceinline__ explicit Sums(const Block& block) : zero(shared_address(&zero_cell)) {
#pragma unroll
        for (int i = 0; i < CHAINS * S::PHASES * S::FRAGMENTS * 4; ++i) (&sum[0][0][0][0])[i] = 0.0f;
        const unsigned lane = block.lane, own_plane = (lane >> 4) * (S::CELLS * CELL_NBYTES);
        if constexpr (S::IS_UP) {
#pragma unroll
            for (int f = 0; f < S::FRAGMENTS; ++f) {
                const unsigned position = min(f * 16 + (lane & 15), S::POSITIONS - 1u);
                const int row = static_cast<int>(position / (S::INPUT + 1)) + block.half, column = position % (S::INPUT + 1);
                own_cell[f] = own_plane + (row * S::INPUT + column) * CELL_NBYTES;
                is_inside[f] = 0;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int y = row - 1 + i / 2, x = column - 1 + i % 2;
                    is_inside[f] |= (y >= 0 && y < S::X_ROWS && x >= 0 && x < S::INPUT ? 1u : 0u) << i;
                }
            }
        } else {
            const int row = S::SIDE == 16 ? 0 : S::SIDE == 8 ? lane >> 3 & 1 : lane >> 2 & 1, column = lane & (S::SIDE - 1);
            const int first = row - (block.half == 0 ? 1 : 0);
            own_cell[0] = own_plane + static_cast<unsigned>((first * S::INPUT + column - 1) * CELL_NBYTES);
            is_inside[0] = (block.half == 0 ? 0u : 1u) | (block.half == 0 ? 2u : 0u) | (column > 0 ? 4u : 0u) | (column < S::SIDE - 1 ? 8u : 0u) | (row << 4);
        }
    }

    // Address of the cell of a row and a column of the taps, counted from the first tap of the first position.
    __device__ __forceinline__ unsigned cell(unsigned x, int row, int dx) const {
        const unsigned there = x + own_cell[0] + (row * S::INPUT + dx) * CELL_NBYTES;
        bool is_there = dx == 1 || (is_inside[0] & (dx == 0 ? 4u : 8u));
        // The first row is beyond the picture in the upper half, the last one in the lower half.
        const int own_rows = S::SIDE == 16 ? 1 : 2, last = S::INPUT / 2 + 1;
        if (own_rows == 1) {
            if (row == 0) is_there = is_there && (is_inside[0] & 1u);
            if (row == last) is_there = is_there && (is_inside[0] & 2u);
        } else {
            const bool is_second = is_inside[0] >> 4;
            if (row == 0) is_there = is_there && (is_second || (is_inside[0] & 1u));
            if (row + 1 == last) is_there = is_there && (!is_second || (is_inside[0] & 2u));
            if (row == last) is_there = is_there && (is_second ? false : (is_inside[0] & 2u) != 0u);
        }
        return is_there ? there : zero;
    }

    // Loads come before the products that need them: the compiler keeps the order.
    __device__ __forceinline__ void add(unsigned x, unsigned weights) {
        uint2 w[9];
        if constexpr (S::SIDE < 16 || S::IS_UP) {
#pragma unroll
            for (int tap = 0; tap < 9; ++tap) w[tap] = load_two_words(weights + tap * 256);
        }
        if constexpr (S::IS_UP) {
#pragma unroll
            for (int first = 0; first < S::FRAGMENTS; first += AT_ONCE) {
                unsigned a[AT_ONCE][2][2][4];  // x one row above, in the row; one column on the left, in the column
#pragma unroll
                for (int f = 0; f < AT_ONCE; ++f) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const unsigned there = x + own_cell[first + f] - ((1 - i / 2) * S::INPUT + 1 - i % 2) * CELL_NBYTES;
                        ldmatrix_x4(a[f][i / 2][i % 2], is_inside[first + f] >> i & 1u ? there : zero);
                    }
                }
                auto product = [&](int phase, int tap, int above, int left) {
#pragma unroll
                    for (int f = 0; f < AT_ONCE; ++f) mma_m16n8k16(sum[0][phase][first + f], a[f][1 - above][1 - left], w[tap].x, w[tap].y);
                };
                product(0, 0, 0, 0), product(1, 1, 0, 0), product(2, 3, 0, 0), product(0, 6, 1, 0), product(3, 4, 0, 0);
                product(1, 7, 1, 0), product(0, 2, 0, 1), product(2, 5, 0, 1), product(0, 8, 1, 1);
            }
        } else if constexpr (S::SIDE == 16) {
            constexpr int A_ROWS = S::SIDE / 2 + 2;
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                unsigned a[A_ROWS][4];
#pragma unroll
                for (int dy = 0; dy < 3; ++dy) w[dy] = load_two_words(weights + (dy * 3 + dx) * 256);
#pragma unroll
                for (int row = 0; row < A_ROWS; ++row) ldmatrix_x4(a[row], cell(x, row, dx));
#pragma unroll
                for (int dy = 0; dy < 3; ++dy) {
#pragma unroll
                    for (int f = 0; f < S::FRAGMENTS; ++f) mma_m16n8k16(sum[0][0][f], a[f + dy], w[dy].x, w[dy].y);
                }
            }
        } else if constexpr (S::SIDE == 8) {
            // A fragment of sixteen positions is two rows. Matrices of a row serve three taps.
            constexpr int PAIRS = (S::SIDE / 2 + 2) / 2;
            unsigned pair[3][PAIRS][4];
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) ldmatrix_x4(pair[dx][i], cell(x, 2 * i, dx));
            }
#pragma unroll
            for (int dy = 0; dy < 3; ++dy) {
#pragma unroll
                for (int dx = 0; dx < 3; ++dx) {
#pragma unroll
                    for (int f = 0; f < S::FRAGMENTS; ++f) {
                        const int one = 2 * f + dy, two = one + 1;
                        const unsigned a[4] = {pair[dx][one / 2][one % 2], pair[dx][two / 2][two % 2], pair[dx][one / 2][one % 2 + 2], pair[dx][two / 2][two % 2 + 2]};
                        mma_m16n8k16(sum[dx][0][f], a, w[dy * 3 + dx].x, w[dy * 3 + dx].y);
                    }
                }
            }
        } else {
            unsigned a[9][4];
#pragma unroll
            for (int tap = 0; tap < 9; ++tap) ldmatrix_x4(a[tap], cell(x, tap / 3, tap % 3));
#pragma unroll
            for (int tap = 0; tap < 9; ++tap) mma_m16n8k16(sum[tap % 3][0][0], a[tap], w[tap].x, w[tap].y);
        }
    }

    // To the warp's area, where the warp alone has read what they overwrite.
    __device__ __forceinline__ void store(unsigned area, int lane) const {
#pragma unroll
        for (int f = 0; f < S::FRAGMENTS; ++f) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned position = f * 16 + half * 8 + (lane >> 2);
                if (position >= S::POSITIONS) continue;
                // Of an up-convolution, in the order of t.
                const unsigned item = S::IS_UP ? position / (S::INPUT + 1) * (2 * S::T_COLUMNS) + position % (S::INPUT + 1) * 2 : position;
#pragma unroll
                for (int phase = 0; phase < S::PHASES; ++phase) {
                    float v[2];
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        v[i] = sum[0][phase][f][half * 2 + i];
                        if constexpr (CHAINS == 3) v[i] += sum[CHAINS - 2][phase][f][half * 2 + i] + sum[CHAINS - 1][phase][f][half * 2 + i];
                    }
                    const unsigned to = area + (item + phase / 2 * S::T_COLUMNS + phase % 2) * 32 + (lane & 3) * 8;
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(v[0]), "f"(v[1]) : "memory");
                }
            }
        }
    }
};

// Sums of four channels over all warps.
template <int LAYER>
__device__ __forceinline__ float4 total(const unsigned char* pool, int item, int quad) {
    typedef Shape<LAYER> S;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) {
        const float4 part = *reinterpret_cast<const float4*>(pool + S::X_OFFSET + warp * S::AREA_NBYTES + item * 32 + quad * 16);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    return sum;
}

// Sums of an output of an up-convolution: t through the filter 1 3 3 1 over 4.
template <int LAYER>
__device__ __forceinline__ void filter(const Block& block, unsigned char* pool, int row, int column, int quad, bool has_pixel, float (&v)[4]) {
    typedef Shape<LAYER> S;
    enum : int { ITEMS = S::PHASES * S::POSITIONS };
    unsigned char* const t = pool + T_OFFSET;
#pragma unroll
    for (int turn = 0; turn < (2 * ITEMS + THREADS - 1) / THREADS; ++turn) {
        const unsigned i = turn * THREADS + block.tid;
        if (i < 2 * ITEMS) *reinterpret_cast<float4*>(t + i * 16) = total<LAYER>(pool, i >> 1, i & 1);
    }
    sync_layers();
    if (!has_pixel) return;
    // The first tap lies beyond t in the first row and column.
    const int first_row = block.half == 0 ? 0 : S::INPUT - 2;  // of t in shared memory
    const unsigned char* const from = t + ((row - 1 - first_row) * S::T_COLUMNS + column - 1) * 32 + quad * 16;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        if (p == 0 && row == 0) continue;
        float across[4] = {};
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (q == 0 && column == 0) continue;
            const float4 one = *reinterpret_cast<const float4*>(from + (p * S::T_COLUMNS + q) * 32);
            const float tap = q == 1 || q == 2 ? 0.75f : 0.25f;
            across[0] += tap * one.x, across[1] += tap * one.y, across[2] += tap * one.z, across[3] += tap * one.w;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] += (p == 1 || p == 2 ? 0.75f : 0.25f) * across[i];
    }
}

template <int LAYER>
__device__ __forceinline__ void run_layer(const Block& block, const Memory& memory, unsigned char* pool) {
    typedef Shape<LAYER> S;
    constexpr int SIDE = S::SIDE;
    const unsigned tid = block.tid, pixel = tid >> 1, quad = tid & 1;
    const int row = block.half * (SIDE / 2) + pixel / SIDE, column = pixel % SIDE;
    const bool has_pixel = pixel < SIDE * SIDE / 2;
    const unsigned area = block.pool + S::X_OFFSET + block.warp * S::AREA_NBYTES;
    const unsigned weights = block.pool + (LAYER & 1) * WEIGHT_NBYTES + block.warp * (WEIGHT_NBYTES / WARPS) + block.lane * 8;
    auto add = [&](Sums<LAYER>& sums, int step) { sums.add(area + step * S::STEP_NBYTES, weights + step * (9 * 256)); };
    auto wait_for_weights = [&]() { wait_barrier(shared_address(&weight_barriers[LAYER & 1]), LAYER >> 1 & 1); };
    const Input<LAYER> input(block, memory.kept);
    constexpr int AT_ONCE = LAYER == 0 ? 0 : S::TURNS * STEPS <= 16 ? STEPS : 1;  // steps whose loads are under way together
    uint4 held[AT_ONCE == 0 ? 1 : AT_ONCE * S::TURNS];
    if constexpr (LAYER > 0) input.load(held, 0);
    Sums<LAYER> sums(block);
    if constexpr (LAYER == 0 || AT_ONCE == STEPS) {
        if constexpr (LAYER > 0) input.store(held, 0, block.tag);
        __syncwarp();
        wait_for_weights();
#pragma unroll
        for (int step = 0; step < STEPS; ++step) add(sums, step);
    } else {
#pragma unroll 1
        for (int step = 0; step < STEPS; ++step) {
            input.store(held, step, block.tag);
            __syncwarp();
            if (step + 1 < STEPS) input.load(held, step + 1);
            if (step == 0) wait_for_weights();
            add(sums, step);
        }
    }
    __syncwarp();
    sums.store(area, block.lane);
    sync_layers();
    if (LAYER + 2 < LAYERS && tid == 0) copy_weights(block, memory.weight, LAYER + 2);
    float v[4] = {};
    if constexpr (S::IS_UP) {
        filter<LAYER>(block, pool, row, column, quad, has_pixel, v);
    } else if (has_pixel) {
        const float4 sum = total<LAYER>(pool, pixel, quad);
        v[0] = sum.x, v[1] = sum.y, v[2] = sum.z, v[3] = sum.w;
    }
    wait_barrier(shared_address(&constants_barriers[LAYER]), 0);
    float rgb[IMG_CHANNELS] = {};
    if (has_pixel) {
        const int channel = quad * 4;
        const float noise = noises[LAYER][pixel], gain = layer_numbers[LAYER][0], clamp = layer_numbers[LAYER][1];
        float own[CONSTANTS][4], styled_v[4];
#pragma unroll
        for (int k = 0; k < (S::IS_UP ? 3 : CONSTANTS); ++k) load_many(&constants[LAYER][k][channel], own[k]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[i] = finish(v[i], own[0][i], noise, own[1][i], gain, clamp);
            styled_v[i] = v[i] * own[2][i];
        }
        const unsigned low = to_half2(styled_v[0], styled_v[1]), high = to_half2(styled_v[2], styled_v[3]);
        const int place = (row * SIDE + column) * CHANNELS + block.group * 8 + channel;
        if constexpr (LAYER + 1 == LAYERS) {
            if (memory.y != nullptr) *reinterpret_cast<uint2*>(memory.y + place) = make_uint2(low, high);
        } else {
            unsigned char* const cell = memory.kept + planes_offset(LAYER) + (block.group * (SIDE * SIDE) + row * SIDE + column) * CELL_NBYTES;
            store_relaxed(cell + channel * 2, tagged(low, block.tag), tagged(high, block.tag));
        }
        if constexpr (!S::IS_UP) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int c = 0; c < IMG_CHANNELS; ++c) rgb[c] += v[i] * own[3 + c][i];
            }
        }
        if (memory.observed != nullptr && memory.observed_layer == LAYER) store_many(memory.observed + place, v);
    }
    if constexpr (!S::IS_UP) {
#pragma unroll
        for (int c = 0; c < IMG_CHANNELS; ++c) {
            rgb[c] += __shfl_xor_sync(0xffffffffu, rgb[c], 1);
            const int place = ((block.group * SIDE + row) * SIDE + column) * IMG_CHANNELS + c;
            if (!has_pixel || quad != 0) continue;
            if constexpr (LAYER / 2 < PICTURES) {
                store_relaxed(reinterpret_cast<float*>(memory.kept + parts_offset(LAYER / 2)) + place, tagged(rgb[c], block.tag));
            } else {
                memory.rgb_parts[place] = rgb[c];
            }
        }
    }
    if constexpr (LAYER + 1 < LAYERS) sync_layers();  // all have read the partial sums
}

// ---- Pictures ---------------------------------------------------------------------------------------------------------------------

// image = clamp(sum of parts + bias) + U(previous), as in parts/picture_beside.cuh. `threads` threads call this.
__device__ __forceinline__ void add_up(
    const Block& block, int picture, const Memory& memory, float clamp, const float* previous, float* image) {
    const int side = 4 << picture, numbers = side * side * IMG_CHANNELS;
    const float* const parts = reinterpret_cast<const float*>(memory.kept + parts_offset(picture));
    const float* const biases = memory.rgb_weight() + RGBS * IMG_CHANNELS * CHANNELS;
    const float* const taps = biases + RGBS * IMG_CHANNELS;
    for (int i = block.tid; i < numbers; i += THREADS) {
        float value = 0.0f;
#pragma unroll 1
        for (int first = 0; first < GROUPS; first += 16) {
            float part[16];
#pragma unroll
            for (int k = 0; k < 16; ++k) part[k] = load_relaxed_float(parts + (first + k) * numbers + i);
#pragma unroll
            for (int k = 0; k < 16; ++k) value += is_fresh(part[k], block.tag) ? without_tag(part[k]) : load_fresh(parts + (first + k) * numbers + i, block.tag);
        }
        const int c = i % IMG_CHANNELS, row = i / IMG_CHANNELS / side, column = i / IMG_CHANNELS % side, low_side = side / 2;
        value = bounded(value + biases[picture * IMG_CHANNELS + c], clamp);
        if (previous != nullptr) {
            const int y = (row + 1) / 2 - 1, x = (column + 1) / 2 - 1;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int low_row = y + j / 2, low_column = x + j % 2;
                if (static_cast<unsigned>(low_row) >= static_cast<unsigned>(low_side) || static_cast<unsigned>(low_column) >= static_cast<unsigned>(low_side)) continue;
                const float weight = taps[3 - (row & 1) - j / 2 * 2] * taps[3 - (column & 1) - j % 2 * 2];
                value += weight * previous[(low_row * low_side + low_column) * IMG_CHANNELS + c];
            }
        }
        image[i] = value;
    }
    sync_layers();
}

extern "C" __global__ void __launch_bounds__(32 * ALL_WARPS, 1) first_layers(
    const float* __restrict__ ws, const uint4* __restrict__ style_rows, const float2* __restrict__ terms, const int4* __restrict__ items,
    const float* __restrict__ constant, const void* __restrict__ weight, const float* __restrict__ values, const float* __restrict__ table,
    const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source, void* kept, int raw_offset, float* styles, float* demod,
    unsigned* flags, T* y, float* rgb_parts, float* image_4, float* image_8, float clamp_4, float clamp_8, int adds_image, int item_count,
    int style_width, unsigned* counters, T* observed, int observed_layer) {
    wait_for_previous_kernel();
    extern __shared__ __align__(128) unsigned char pool[];
    const int tid = threadIdx.x;
    const unsigned run = __ldcg(counters + 1);
    const Block block = {tid, tid & 31, tid >> 5, static_cast<int>(blockIdx.x) >> 1, static_cast<int>(blockIdx.x) & 1, shared_address(pool), ~run & 1u};
    const Memory memory = {static_cast<const unsigned char*>(weight), ws, style_rows, terms, items, constant, values, table, noise_gain, noise_source,
                           static_cast<unsigned char*>(kept), reinterpret_cast<float*>(static_cast<unsigned char*>(kept) + raw_offset), styles, demod, y,
                           rgb_parts, observed, observed_layer, item_count, style_width};
    const bool is_for_pictures = block.group == GROUPS;
    if (!is_for_pictures && tid == 0) {
        init_barrier(shared_address(&weight_barriers[0]), 1);
        init_barrier(shared_address(&weight_barriers[1]), 1);
        for (int i = 0; i < LAYERS; ++i) init_barrier(shared_address(&constants_barriers[i]), 2);
        init_barrier(shared_address(&first_barrier), 1);
        fence_barrier_init();
    }
    if (tid == 0 && blockIdx.x == 0) flags[0] = 0;
    if (tid == 0) zero_cell = make_uint4(0u, 0u, 0u, 0u);
    if (!is_for_pictures && tid == 0) copy_weights(block, memory.weight, 0);
    __syncthreads();
    if (is_for_pictures) {
        if (block.warp < WARPS) {
            if constexpr (PICTURES > 0) add_up(block, 0, memory, clamp_4, nullptr, image_4);
            if constexpr (PICTURES > 1) add_up(block, 1, memory, clamp_8, adds_image ? image_4 : nullptr, image_8);
        }
    } else {
        auto make_styles = [&]() {  // warp by warp through all blocks, so that the first warps of each block have an item
            for (int item = block.warp * (2 * GROUPS) + blockIdx.x; item < FIRST_ITEMS; item += ALL_WARPS * 2 * GROUPS) make_first_styles(memory, block, item);
        };
        if (block.warp >= WARPS) {
            const int first = block.warp - WARPS;
            const OwnStyles own(memory, block, first);
            make_styles();
            own.make(memory, block, first);
            for (int layer = first + STYLE_WARPS; layer <= LAYERS; layer += STYLE_WARPS) OwnStyles(memory, block, layer).make(memory, block, layer);
        } else {
            make_styles();
            FirstInput first(memory, block);
            load_numbers(memory, block);
            first.make(block);
            if (LAYERS > 1 && tid == 0) copy_weights(block, memory.weight, 1);
            run_layer<0>(block, memory, pool);
            if constexpr (LAYERS > 1) run_layer<1>(block, memory, pool);
            if constexpr (LAYERS > 2) run_layer<2>(block, memory, pool);
            if constexpr (LAYERS > 3) run_layer<3>(block, memory, pool);
            if constexpr (LAYERS > 4) run_layer<4>(block, memory, pool);
        }
    }
    if (block.warp >= WARPS) make_later_styles(memory, block, blockIdx.x * STYLE_WARPS + block.warp - WARPS, gridDim.x * STYLE_WARPS);
    __syncthreads();
    if (tid == 0 && atomicInc(counters, gridDim.x - 1) == gridDim.x - 1) counters[1] = run + 1;
}
