// What becomes of a tile's sums, COLUMNS channels of 16 x 16 pixels, which two warpgroups hold after products by wgmma.
//
// Macros LAYER_END, WAY_BACK, DISCRIMINATOR and CLUSTER:
// neither   The sums go to `sums`, a slice of split-K each, as those of gradient_conv.
// LAYER_END The end of the layer, the formula of gradient_layer: `demod`, `noise` and `bias` are the layer's, z and to = x (or none) are written.
// WAY_BACK  The way back through the layer before, the formula of gradient_activation: `style` is that of the adjoint's own layer, the others
//           are those of the layer before, whose z is read; to = u is written. Each block has a row of its own in style_sums and demod_sums. Of the
//           network's constant, without `demod`, only style_sums are wanted.
// DISCRIMINATOR The sums go on as parts/discriminator_end.cuh says, without slices.
// In LAYER_END and WAY_BACK, CLUSTER blocks are the slices of split-K of a tile. Each leaves its sums in its shared memory, and ends the tile for its
// share of the pixels. 1, 2, 4 or 8. Results that they read come to shared memory while sums are written there:
//
//     0           SUM_NBYTES                 RESULTS                                NOISES
//     | sums      | totals of all threads    | z of the block's pixels, WAY_BACK    | noise of its pixels |
#pragma once
#include "parts/copies.cuh"
#include "parts/gradient_cluster.cuh"
#include "parts/registers.cuh"
#if DISCRIMINATOR
#include "parts/discriminator_end.cuh"
#endif

#define TILE_END_PARAMETERS                                                                                                        \
    float* __restrict__ sums, const float* __restrict__ style, const float* __restrict__ demod, const float* __restrict__ noise,   \
        const float* __restrict__ bias, half_bits* __restrict__ z, half_bits* __restrict__ to, float* __restrict__ style_sums,     \
        float* __restrict__ demod_sums, int style_count, int demod_count, int sum_count, float unit, float gain, float clamp
#define TILE_END_ARGUMENTS \
    sums, style, demod, noise, bias, z, to, style_sums, demod_sums, style_count, demod_count, sum_count, unit, gain, clamp

enum : int {
    SIDE = 16,  // of a tile
    THREADS = 256,
    TILE_PIXELS = SIDE * SIDE,
    SUM_PITCH = COLUMNS + 8,  // of a pixel in shared memory, so that a warp's eight pixels are in different banks
    SUM_NBYTES = TILE_PIXELS * SUM_PITCH * 4,
    QUADS = COLUMNS / 4,
    PIXEL_ROWS = THREADS / QUADS,  // pixels that are ended side by side
    BLOCKS = CLUSTER > 1 ? CLUSTER : 1,  // that share a tile
    OWN_PIXELS = TILE_PIXELS / BLOCKS,
    TURNS = OWN_PIXELS / PIXEL_ROWS,
    BATCH = TURNS < 4 ? TURNS : 4,  // turns whose sums are loaded together
    RESULTS = SUM_NBYTES + 2 * THREADS * 16,
    RESULT_CHUNKS = COLUMNS / 8,  // of 16 bytes, of a pixel
    NOISES = RESULTS + (WAY_BACK ? OWN_PIXELS * COLUMNS * 2 : 0),
    TILE_END_NBYTES = NOISES + OWN_PIXELS * 4,  // of shared memory
    MAY_BE_SMALL = COLUMNS < 128,  // smaller than a tile, which then is the only one
};

#define TILE_SLOPE 0.2f

// Sums over a block's threads of four channels each, in those of the first row: of the way back's two sums.
__device__ __forceinline__ void add_rows(unsigned scratch, const float (&first)[4], const float (&second)[4], bool is_mine, float* to, float* also) {
    const unsigned own = scratch + threadIdx.x * 16;
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(own), "f"(first[0]), "f"(first[1]), "f"(first[2]), "f"(first[3]) : "memory");
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(own + THREADS * 16), "f"(second[0]), "f"(second[1]), "f"(second[2]), "f"(second[3])
                 : "memory");
    __syncthreads();
    if (threadIdx.x >= 2 * QUADS) return;
    // A row of threads has the quads of all channels; the second row adds the second sums up.
    const bool is_second = threadIdx.x >= QUADS;
    float total[4] = {};
#pragma unroll
    for (int row = 0; row < PIXEL_ROWS; ++row) {
        float q[4];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                     : "=f"(q[0]), "=f"(q[1]), "=f"(q[2]), "=f"(q[3])
                     : "r"(own + (is_second ? THREADS - QUADS : 0) * 16 + row * QUADS * 16)
                     : "memory");
#pragma unroll
        for (int i = 0; i < 4; ++i) total[i] += q[i];
    }
    if (is_mine && (is_second ? also : to)) store_many(is_second ? also : to, total);
}

// The warps that have pixels of the picture, all or those of the first warpgroup.
__device__ __forceinline__ int busy_warps(int y0, int side) { return MAY_BE_SMALL && side - y0 <= SIDE / 2 ? THREADS / 64 : THREADS / 32; }

// Where a block's pixel lies in the picture.
__device__ __forceinline__ int place_of(int pixel, int side) { return (pixel >> 4) * side + (pixel & 15); }

// Leaves a tile's sums in shared memory, [pixel][SUM_PITCH].
__device__ __forceinline__ void leave_sums(const float (&sum)[2][COLUMNS / 2], unsigned shared) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pixel = (warp / 4 * 8 + warp % 4 * 2 + m) * SIDE + half * 8 + (lane >> 2);
            const unsigned place = shared + (pixel * SUM_PITCH + 2 * (lane & 3)) * 4;
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(place + j * 32), "f"(sum[m][4 * j + 2 * half]),
                             "f"(sum[m][4 * j + 2 * half + 1])
                             : "memory");
        }
}

// `shared` is the address of TILE_END_NBYTES that no copy and no product uses any more in this thread; y0 and x0 are the tile's first pixel.
#if DISCRIMINATOR
static_assert(THREADS == SIDE * RESULT_CHUNKS, "a thread ends a column's pixels of its eight channels");
enum : int { TOGETHER = 4 };  // pixels whose loads are under way together

__device__ __forceinline__ void end_tile(
    const float (&sum)[2][COLUMNS / 2], unsigned shared, int sample, int y0, int x0, int side, int first_channel, int channels,
#if TAPS
    DISCRIMINATOR_END_PARAMETERS, DISCRIMINATOR_JOIN_PARAMETERS) {
#else
    DISCRIMINATOR_END_PARAMETERS) {
#endif
    __syncthreads();  // all products are done
    leave_sums(sum, shared);
    __syncthreads();
    const int chunk = threadIdx.x % RESULT_CHUNKS, column = threadIdx.x / RESULT_CHUNKS, channel = first_channel + chunk * 8;
    if (x0 + column >= side || channel >= channels) return;
#pragma unroll 1
    for (int row = 0; row < SIDE; row += TOGETHER) {
        if (y0 + row >= side) return;
        float v[TOGETHER][8];
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k)
#pragma unroll
            for (int i = 0; i < 8; i += 4)
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                             : "=f"(v[k][i]), "=f"(v[k][i + 1]), "=f"(v[k][i + 2]), "=f"(v[k][i + 3])
                             : "r"(shared + (((row + k) * SIDE + column) * SUM_PITCH + chunk * 8 + i) * 4));
        end_channels(v, sample, y0 + row, x0 + column, side, channel, channels, DISCRIMINATOR_END_ARGUMENTS);
    }
}
#else
__device__ __forceinline__ void end_tile(
    float (&sum)[2][COLUMNS / 2], unsigned shared, int sample, int samples, int tile, int y0, int x0, int side, int first_channel,
    int channels, int slice, TILE_END_PARAMETERS) {
#if !LAYER_END && !WAY_BACK
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int fragment = warp / 4 * 8 + warp % 4 * 2;  // its first row; the second is the next one
    float* own = sums + (size_t)(slice * samples + sample) * side * side * channels;
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int y = y0 + fragment + m, column = x0 + half * 8 + (lane >> 2);
            float* pixel = own + (size_t)(y * side + column) * channels;
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j) {
                const int channel = first_channel + j * 8 + 2 * (lane & 3);
                if (channel < channels)
                    *reinterpret_cast<float2*>(pixel + channel) = make_float2(sum[m][4 * j + 2 * half], sum[m][4 * j + 2 * half + 1]);
            }
        }
#else
    const int quad = threadIdx.x % QUADS, row = threadIdx.x / QUADS, channel = first_channel + 4 * quad;
    const bool is_mine = channel < channels;
    const int first = slice * OWN_PIXELS;
    auto is_in_picture = [&](int pixel) { return y0 + (pixel >> 4) < side && x0 + (pixel & 15) < side; };  // a tile may be larger
    const size_t corner = ((size_t)sample * side * side + y0 * side + x0) * channels;
    const int own = first + threadIdx.x;
    const float own_noise = noise && threadIdx.x < OWN_PIXELS && is_in_picture(own) ? noise[y0 * side + x0 + place_of(own, side)] : 0.0f;
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f}, b[4] = {}, s[4] = {};
    if (is_mine) {
        if (demod) load_many(demod + (size_t)sample * demod_count + channel, d), load_many(bias + channel, b);
        if (style) load_many(style + (size_t)sample * style_count + channel, s);
    }
    __syncthreads();  // all products are done
#if WAY_BACK
#pragma unroll
    for (int index = threadIdx.x; index < OWN_PIXELS * RESULT_CHUNKS; index += THREADS) {
        const int pixel = first + index / RESULT_CHUNKS, first_of_chunk = first_channel + index % RESULT_CHUNKS * 8;
        const bool is_there = first_of_chunk < channels && is_in_picture(pixel);
        copy_async(shared + RESULTS + index * 16, is_there ? z + corner + (size_t)place_of(pixel, side) * channels + first_of_chunk : z, is_there);
    }
    commit_copies();
#endif
    leave_sums(sum, shared);
    if (threadIdx.x < OWN_PIXELS)
        asm volatile("st.shared.f32 [%0], %1;\n" ::"r"(shared + NOISES + threadIdx.x * 4), "f"(own_noise) : "memory");
    wait_copies<0>();
    sync_cluster();
#if WAY_BACK
    // Of a result z > 0 and of another: dz to dv from the sum, and what undoes the leaky ReLU.
    float style_sum[4] = {}, demod_sum[4] = {}, up[4], down[4];
    // Opaque: of a choice of two inverses the compiler makes the inverse of a choice, a division for each number.
    const float up_inverse = opaque(1.0f / gain), down_inverse = opaque(1.0f / (TILE_SLOPE * gain));
#pragma unroll
    for (int i = 0; i < 4; ++i) up[i] = unit * s[i] * gain, down[i] = up[i] * TILE_SLOPE;
#else
    float scale[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) scale[i] = d[i] * unit;
#endif
    // Not unrolled: a block does this once, and would wait for its instructions.
#pragma unroll 1
    for (int batch = 0; batch < TURNS; batch += BATCH) {
        float parts[BATCH][BLOCKS][4], noises[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int pixel = (batch + i) * PIXEL_ROWS + row;  // of the block's own ones
            if (MAY_BE_SMALL && !is_in_picture(first + pixel)) continue;
            asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(noises[i]) : "r"(shared + NOISES + pixel * 4));
#pragma unroll
            for (int block = 0; block < BLOCKS; ++block)
                load_sums(shared + ((first + pixel) * SUM_PITCH + 4 * quad) * 4, block, parts[i][block]);
        }
#pragma unroll
        for (int turn = 0; turn < BATCH; ++turn) {
            const int pixel = (batch + turn) * PIXEL_ROWS + row, place = place_of(first + pixel, side);
            if (!is_mine || !is_in_picture(first + pixel)) continue;
            float(&v)[4] = parts[turn][0], out[4];
#pragma unroll
            for (int block = 1; block < BLOCKS; ++block)
#pragma unroll
                for (int i = 0; i < 4; ++i) v[i] += parts[turn][block][i];
#if WAY_BACK
            float result[4];
            uint2 words;
            asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n" : "=r"(words.x), "=r"(words.y) : "r"(shared + RESULTS + (pixel * COLUMNS + 4 * quad) * 2));
            from_half2(words.x, result[0], result[1]), from_half2(words.y, result[2], result[3]);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                style_sum[i] = fmaf(result[i], v[i], style_sum[i]);
                const bool is_up = result[i] > 0.0f;
                const float dv = fabsf(result[i]) < clamp ? v[i] * (is_up ? up[i] : down[i]) : 0.0f;
                // Stored results are finite, so that the second factor is, beyond the clamp too.
                demod_sum[i] = fmaf(dv, fmaf(result[i], is_up ? up_inverse : down_inverse, -b[i] - noises[turn]), demod_sum[i]);
                out[i] = dv * d[i];
            }
            if (to) store_many(to + corner + (size_t)place * channels + channel, out);
#else
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float before = fmaf(scale[i], v[i], noises[turn] + b[i]);
                out[i] = bounded((before > 0.0f ? before : TILE_SLOPE * before) * gain, clamp);
            }
            store_many(z + corner + (size_t)place * channels + channel, out);
            if (to) {
#pragma unroll
                for (int i = 0; i < 4; ++i) out[i] *= s[i];
                store_many(to + corner + (size_t)place * channels + channel, out);
            }
#endif
        }
    }
#if WAY_BACK
#pragma unroll
    for (int i = 0; i < 4; ++i) style_sum[i] *= unit, demod_sum[i] /= d[i];
    const size_t row_of_sums = (size_t)sample * sum_count + (size_t)(tile * BLOCKS + slice) * channels + channel;
    add_rows(shared + SUM_NBYTES, style_sum, demod_sum, is_mine, style_sums + row_of_sums, demod_sums ? demod_sums + row_of_sums : nullptr);
#endif
    if constexpr (CLUSTER > 1) sync_cluster();  // blocks that end would take their sums with them
#endif
}
#endif
