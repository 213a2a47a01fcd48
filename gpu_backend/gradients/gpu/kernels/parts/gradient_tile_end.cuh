// What becomes of a tile's sums, COLUMNS channels of 16 x 16 pixels, which two warpgroups hold after products by wgmma.
//
// Macros LAYER_END, WAY_BACK and CLUSTER:
// neither   The sums go to `sums`, a slice of split-K each, as those of gradient_conv.
// LAYER_END The end of the layer, the formula of gradient_layer: `demod`, `noise` and `bias` are the layer's, z and to = x (or none) are written.
// WAY_BACK  The way back through the layer before, the formula of gradient_activation: `style` is that of the adjoint's own layer, the others
//           are those of the layer before, whose z is read; to = u is written. Each block has a row of its own in style_sums and demod_sums. Of the
//           network's constant, without `demod`, only style_sums are wanted.
// In the latter two, CLUSTER blocks are the slices of split-K of a tile. Each leaves its sums in its shared memory, and ends the tile for its
// share of the pixels. 1, 2, 4 or 8.
#pragma once
#include "parts/copies.cuh"

#define TILE_END_PARAMETERS                                                                                                        \
    float* __restrict__ sums, const float* __restrict__ style, const float* __restrict__ demod, const float* __restrict__ noise,   \
        const float* __restrict__ bias, half_bits* __restrict__ z, half_bits* __restrict__ to, float* __restrict__ style_sums,     \
        float* __restrict__ demod_sums, int style_count, int demod_count, int sum_count, float unit, float gain, float clamp
#define TILE_END_ARGUMENTS \
    sums, style, demod, noise, bias, z, to, style_sums, demod_sums, style_count, demod_count, sum_count, unit, gain, clamp

#if CLUSTER > 1
#define WITH_CLUSTERS __cluster_dims__(1, 1, CLUSTER)
#else
#define WITH_CLUSTERS
#endif

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
    TILE_END_NBYTES = SUM_NBYTES + THREADS * 16,  // of shared memory
};

#define TILE_SLOPE 0.2f

// All threads of the tile's blocks have written what the others read.
__device__ __forceinline__ void wait_for_tile() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::: "memory");
#else
    __syncthreads();
#endif
}

// Four sums of this block's shared memory, or of that of another block of the cluster.
__device__ __forceinline__ void load_sums(unsigned address, int block, float (&v)[4]) {
#if CLUSTER > 1
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(there));
#else
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address));
#endif
}

// Sums over a block's threads of four channels, in those of the first row.
__device__ __forceinline__ void add_rows(unsigned scratch, const float (&v)[4], bool is_mine, float* place) {
    const unsigned own = scratch + threadIdx.x * 16;
    __syncthreads();
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(own), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
    __syncthreads();
    if (threadIdx.x >= QUADS || !is_mine) return;
    float total[4] = {};
#pragma unroll
    for (int row = 0; row < PIXEL_ROWS; ++row) {
        float q[4];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                     : "=f"(q[0]), "=f"(q[1]), "=f"(q[2]), "=f"(q[3])
                     : "r"(own + row * QUADS * 16)
                     : "memory");
#pragma unroll
        for (int i = 0; i < 4; ++i) total[i] += q[i];
    }
    store_many(place, total);
}

// `shared` is the address of TILE_END_NBYTES that no copy and no product uses any more in this thread; y0 and x0 are the tile's first pixel.
__device__ __forceinline__ void end_tile(
    float (&sum)[2][COLUMNS / 2], unsigned shared, int sample, int samples, int tile, int y0, int x0, int side, int first_channel,
    int channels, int slice, TILE_END_PARAMETERS) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int fragment = warp / 4 * 8 + warp % 4;  // its first row; that of the second is four below
#if !LAYER_END && !WAY_BACK
    float* own = sums + (size_t)(slice * samples + sample) * side * side * channels;
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int y = y0 + fragment + 4 * m, column = x0 + half * 8 + (lane >> 2);
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
    const int first = slice * OWN_PIXELS + row;
    // Of a tile that is larger than the picture.
    auto is_in_picture = [&](int pixel) { return is_mine && y0 + (pixel >> 4) < side && x0 + (pixel & 15) < side; };
    const size_t corner = ((size_t)sample * side * side + y0 * side + x0) * channels + channel;
    wait_copies<0>();
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pixel = (fragment + 4 * m) * SIDE + half * 8 + (lane >> 2);
            const unsigned place = shared + (pixel * SUM_PITCH + 2 * (lane & 3)) * 4;
#pragma unroll
            for (int j = 0; j < COLUMNS / 8; ++j)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};\n" ::"r"(place + j * 32), "f"(sum[m][4 * j + 2 * half]),
                             "f"(sum[m][4 * j + 2 * half + 1])
                             : "memory");
        }
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f}, b[4] = {}, s[4] = {};
    if (is_mine) {
        if (demod) load_many(demod + (size_t)sample * demod_count + channel, d), load_many(bias + channel, b);
        if (style) load_many(style + (size_t)sample * style_count + channel, s);
    }
#if WAY_BACK
    uint2 later[BATCH];  // of z, under way while sums are exchanged and turns before are ended
    auto load_results = [&](int turn) {
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int pixel = first + (turn + i) * PIXEL_ROWS;
            later[i] = make_uint2(0, 0);
            if (turn < TURNS && is_in_picture(pixel))
                later[i] = *reinterpret_cast<const uint2*>(z + corner + (size_t)((pixel >> 4) * side + (pixel & 15)) * channels);
        }
    };
    load_results(0);
#endif
    wait_for_tile();
#if WAY_BACK
    const float up_slope = gain, down_slope = TILE_SLOPE * gain, up_inverse = 1.0f / up_slope, down_inverse = 1.0f / down_slope;
    float style_sum[4] = {}, demod_sum[4] = {};
#endif
    // Not unrolled: a block does this once, and would wait for its instructions.
#pragma unroll 1
    for (int batch = 0; batch < TURNS; batch += BATCH) {
        float parts[BATCH][BLOCKS][4];
#pragma unroll
        for (int i = 0; i < BATCH; ++i)
#pragma unroll
            for (int block = 0; block < BLOCKS; ++block)
                load_sums(shared + ((first + (batch + i) * PIXEL_ROWS) * SUM_PITCH + 4 * quad) * 4, block, parts[i][block]);
#if WAY_BACK
        uint2 results[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) results[i] = later[i];
        load_results(batch + BATCH);
#endif
#pragma unroll
        for (int turn = 0; turn < BATCH; ++turn) {
            const int pixel = first + (batch + turn) * PIXEL_ROWS, place = (pixel >> 4) * side + (pixel & 15);
            const bool is_pixel = is_in_picture(pixel);
            const float n = noise && is_pixel ? noise[y0 * side + x0 + place] : 0.0f;
            float v[4], out[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) v[i] = parts[turn][0][i];
#pragma unroll
            for (int block = 1; block < BLOCKS; ++block)
#pragma unroll
                for (int i = 0; i < 4; ++i) v[i] += parts[turn][block][i];
#if WAY_BACK
            float result[4];
            from_half2(results[turn].x, result[0], result[1]), from_half2(results[turn].y, result[2], result[3]);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float up = v[i] * unit;
                style_sum[i] = fmaf(result[i], up, style_sum[i]);
                const bool is_up = result[i] > 0.0f, is_inside = is_pixel && fabsf(result[i]) < clamp;
                const float dv = is_inside ? up * s[i] * (is_up ? up_slope : down_slope) : 0.0f;
                const float product = is_inside ? result[i] * (is_up ? up_inverse : down_inverse) - n - b[i] : 0.0f;
                demod_sum[i] = fmaf(dv, product, demod_sum[i]);
                out[i] = dv * d[i];
            }
            if (is_pixel && to) store_many(to + corner + (size_t)place * channels, out);
#else
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float before = fmaf(d[i] * unit, v[i], n + b[i]);
                out[i] = bounded((before > 0.0f ? before : TILE_SLOPE * before) * gain, clamp);
            }
            if (is_pixel) {
                store_many(z + corner + (size_t)place * channels, out);
                if (to) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) out[i] *= s[i];
                    store_many(to + corner + (size_t)place * channels, out);
                }
            }
#endif
        }
    }
#if WAY_BACK
#pragma unroll
    for (int i = 0; i < 4; ++i) demod_sum[i] /= d[i];
    const size_t own = (size_t)sample * sum_count + (size_t)(tile * BLOCKS + slice) * channels + channel;
    add_rows(shared + SUM_NBYTES, style_sum, is_mine, style_sums + own);
    if (demod_sums) add_rows(shared + SUM_NBYTES, demod_sum, is_mine, demod_sums + own);
#endif
    if constexpr (CLUSTER > 1) wait_for_tile();  // blocks that end would take their sums with them
#endif
}
