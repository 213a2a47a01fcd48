// The second half of an up-convolution whose products transposed_conv.cu computed: the FIR filter 1 3 3 1 over 4 per axis on t, then noise,
// bias, activation, gain, clamp and the style of the convolution that reads the result.
//
// A thread goes down a strip of ROWS rows and COLUMNS columns of outputs, eight channels, in registers: a row of t is filtered along the row,
// then added to the sums of the next four rows of outputs, as in modulated_up_conv.cu. A block has DEPTH channels and WIDTH columns. TMA
// copies its rows of t to a ring in shared memory, two rows a stage, and zeros for what lies outside.
//
// Macros: COLUMNS, ROWS, DEPTH, WIDTH, STAGES, MIN_BLOCKS: see FilterGeometry in gpu_backend/ops/kernels/unfused_tile.py; SHARED_NBYTES: its
// dynamic_nbytes; ACTIVATION; HAS_Y, HAS_RAW: which of y and y_raw are stored; FP8_X (of t) and FP8_Y, with HAS_Y alone, see parts/e4m3.cuh;
// ADDS_PICTURE, IMG_CHANNELS as in modulated_up_conv.cu. HALF is 1.
//
// Shared memory from the first multiple of 1024 bytes on:
//     stage 0     two rows of t x BOX_SPACE: WIDTH + 3 columns of DEPTH channels, swizzled
//     ...
//     stage STAGES - 1
// Static: noise of the block's outputs; barriers.
//
// Pipeline of a turn, two rows of t; a stage is filled again a turn after it was read, by thread 0:
//     copies    | turn + STAGES - 1 -> stage of the turn before
//     filter    | two rows of t, along the row -> sums of the next four rows of outputs, in registers
//     epilogue  | two rows of outputs that are complete -> noise, bias, activation, style -> y, y_raw
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/philox.cuh"
#include "parts/epilogue.cuh"
#include "parts/tensor_core.cuh"
#include "parts/tma.cuh"

enum : int {
    GROUPS = DEPTH / 8,  // of channels of a thread
    THREADS = WIDTH / COLUMNS * GROUPS,
    BOX_COLUMNS = WIDTH + 3,
    BOX_NBYTES = BOX_COLUMNS * ROW_NBYTES,
    BOX_SPACE = (BOX_NBYTES + 1023) / 1024 * 1024,
    STAGE_NBYTES = 2 * BOX_SPACE,
    TURNS = (ROWS + 4) / 2,  // stages of a strip
};
static_assert(HALF && (!FP8_Y || (HAS_Y && !HAS_RAW)), "y alone is e4m3");
static_assert(THREADS % 32 == 0 && ROWS % 2 == 0 && STAGES <= TURNS, "strips are filled in pairs of rows");
static_assert(1024 + STAGES * STAGE_NBYTES == SHARED_NBYTES, "the stages lie in the launch's shared memory");
#include "parts/previous_kernel.cuh"
#include "parts/picture_beside.cuh"

__shared__ __align__(8) unsigned long long full_barriers[STAGES], empty_barriers[STAGES];
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }

// Eight channels of t as fp16.
__device__ __forceinline__ void load_words(unsigned (&words)[4], unsigned from) {
    if constexpr (FP8_X) {
        unsigned low, high;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "r"(from));
        from_e4m3x4(low, words[0], words[1]), from_e4m3x4(high, words[2], words[3]);
    } else {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(from));
    }
}

// Where a group of eight channels lies in a pixel of the box.
__device__ __forceinline__ unsigned group_at(int group, int column) {
    if constexpr (FP8_X) return swizzle(group / 2, column) * 16 + group % 2 * 8;
    return swizzle(group, column) * 16;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) up_filter(
    Y* __restrict__ y, T* __restrict__ y_raw, const float* __restrict__ next_style, const float* __restrict__ bias,
    const float* __restrict__ noise, const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source,
    float noise_strength, int noise_layer, int batch, int side, int cout, int style_stride, float gain, float clamp,
#if ADDS_PICTURE
    PICTURE_PARAMETERS,
#endif
    const __grid_constant__ TensorMap tma_map) {
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
    __shared__ float shared_noise[ROWS][WIDTH];
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int tid = threadIdx.x, sample = blockIdx.z, across = (side + WIDTH - 1) / WIDTH;
    const int first_row = static_cast<int>(blockIdx.x) / across * ROWS, block_column = static_cast<int>(blockIdx.x) % across * WIDTH;
    // Output u takes of t the rows u - 1 .. u + 2, and columns likewise.
    auto load = [&](int turn, int slot) {
        expect_bytes(full_barrier(slot), 2 * BOX_NBYTES);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            tma_load(pool + slot * STAGE_NBYTES + r * BOX_SPACE, &tma_map, blockIdx.y * DEPTH, block_column - 1, first_row - 1 + 2 * turn + r, sample,
                     full_barrier(slot));
        }
    };
    if (tid == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) init_barrier(full_barrier(i), 1), init_barrier(empty_barrier(i), THREADS / 32);
        fence_barrier_init();
    }
    wait_for_previous_kernel();
    if (tid == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) load(i, i);
    }
    const LayerNoise layer_noise(noise, noise_source, noise_gain, noise_strength * gain_before(gain), noise_layer);
    for (int i = tid; i < ROWS * WIDTH; i += THREADS) {
        const int row = first_row + i / WIDTH, column = block_column + i % WIDTH;
        shared_noise[i / WIDTH][i % WIDTH] = row < side && column < side ? layer_noise.at(row * side + column) : 0.0f;
    }
    const int group = tid % GROUPS, local_column = tid / GROUPS * COLUMNS, column = block_column + local_column;
    const int channel = blockIdx.y * DEPTH + group * 8;
    const bool is_there = channel < cout && column < side;
    unsigned style_of[4], bias_of[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const int c = channel + 2 * w;
        style_of[w] = !is_there ? 0u
                      : next_style ? to_half2(next_style[sample * style_stride + c] * FP8_Y_UNIT, next_style[sample * style_stride + c + 1] * FP8_Y_UNIT)
                                   : to_half2(FP8_Y_UNIT, FP8_Y_UNIT);
        bias_of[w] = is_there && bias ? to_half2(bias[c] * gain_before(gain), bias[c + 1] * gain_before(gain)) : 0u;
    }
    __syncthreads();
    const unsigned bound = to_half2(clamp, clamp), unit = word_of(gain_before(gain) * 0.0625f * FP8_X_UNIT);  // the scale of the filter of both axes
    const long long corner = (static_cast<long long>(sample) * side * side + first_row * side + column) * cout + channel;
    Y* to = (HAS_Y ? y : reinterpret_cast<Y*>(y_raw)) + corner;
    unsigned from[COLUMNS + 3], once[COLUMNS][4] = {}, twice[COLUMNS][4] = {}, thrice[COLUMNS][4] = {};
#pragma unroll
    for (int c = 0; c < COLUMNS + 3; ++c) from[c] = pool + (local_column + c) * ROW_NBYTES + group_at(group, local_column + c);
    int slot = 0, phase = 0;
    for (int turn = 0; turn < TURNS; ++turn) {
        wait_barrier(full_barrier(slot), phase);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            unsigned words[COLUMNS + 3][4], whole[COLUMNS][4];
#pragma unroll
            for (int c = 0; c < COLUMNS + 3; ++c) load_words(words[c], from[c] + slot * STAGE_NBYTES + r * BOX_SPACE);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    const unsigned sum = add_thrice2(add2(words[c][w], words[c + 3][w]), add2(words[c + 1][w], words[c + 2][w]));
                    const unsigned two = add2(sum, once[c][w]), three = add2(two, twice[c][w]);
                    whole[c][w] = add2(three, thrice[c][w]);
                    once[c][w] = sum, twice[c][w] = two, thrice[c][w] = three;
                }
            }
            const int row = 2 * turn + r - 3;  // of the strip's outputs
            if (row < 0 || row >= ROWS || first_row + row >= side || !is_there) continue;
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const unsigned shift = word_of(shared_noise[row][local_column + c]);
                unsigned out[4], styled_out[4];
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    out[w] = activated_word(multiply_add2(whole[c][w], unit, add2(bias_of[w], shift)), gain_after(gain), bound, clamp);
                    styled_out[w] = styled(out[w], style_of[w]);
                }
                if (column + c >= side) continue;
                if constexpr (FP8_Y) {
                    *reinterpret_cast<uint2*>(to + c * cout) = make_uint2(to_e4m3x4(styled_out[0], styled_out[1]), to_e4m3x4(styled_out[2], styled_out[3]));
                } else if constexpr (HAS_Y) {
                    *reinterpret_cast<uint4*>(to + c * cout) = make_uint4(styled_out[0], styled_out[1], styled_out[2], styled_out[3]);
                } else {
                    *reinterpret_cast<uint4*>(to + c * cout) = make_uint4(out[0], out[1], out[2], out[3]);
                }
                if constexpr (HAS_Y && HAS_RAW) {
                    *reinterpret_cast<uint4*>(to + (y_raw - reinterpret_cast<T*>(y)) + c * cout) = make_uint4(out[0], out[1], out[2], out[3]);
                }
            }
            to += side * cout;
        }
        // A stage is filled again a turn after it was read.
        __syncwarp();
        if (tid % 32 == 0) arrive(empty_barrier(slot));
        const int last = slot == 0 ? STAGES - 1 : slot - 1;
        if (tid == 0 && turn > 0 && turn - 1 + STAGES < TURNS) {
            wait_barrier(empty_barrier(last), slot == 0 ? phase ^ 1 : phase);
            load(turn - 1 + STAGES, last);
        }
        if (++slot == STAGES) slot = 0, phase ^= 1;
    }
}
