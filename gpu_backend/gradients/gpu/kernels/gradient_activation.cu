// The way back through the end of a layer, from the gradient g of the next convolution's input x = z * style:
//
//     dz = g * style + toRGB's part,   dv = dz * gain * (1 where z > 0, else the slope) * (1 inside the clamp),   u = dv * demod
//     style_sums = sum over pixels of z g,   demod_sums = sum over pixels of dv (v - noise - bias) / demod
//
// v is found from z, since the leaky ReLU can be undone. g is `unit` times the sum of slices of fp32 sums, u goes on as fp16. Without `style`,
// g is the gradient of z itself; without `u`, z is the network's constant, and only style_sums are wanted.
// Macro HALF_G: g is `unit` times one slice in fp16.
// Macro RGB: with toRGB of these features, where t = rgb_unit sum_k W[k] (gradient of the picture's plane k, inside the clamp):
//
//     toRGB's part = t * rgb_style,   rgb_sums = sum over pixels of z t;      g may be missing then
//
// Macro SKIP: of the last layer of a resnet's block, whose output h = z + skip the next layers read. h takes the place of z in style_sums and
// rgb_sums; dz, the gradient of h, is also stored as `block_gradient`, if that is given, for the block's own skip. The skip of the next block adds
// skip_unit * skip_sums, one slice, to it.
//
// A thread does four channels of TURNS pixels together, so that many loads are under way; a warp does runs of up to 32 pixels. Grid: blocks of
// pixels, groups of 128 channels, samples; each block of pixels has a row of its own in all sums.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define WARPS (THREADS / 32)
#define MOST_LANES 32
#define SLOPE 0.2f
#define COLOURS 3
#define SUMS (RGB ? 3 : 2)
// Pixels of a thread under way together, as many as find registers.
#define TURNS (SKIP ? 2 : 8)
// With all parts the compiler needs more registers on Blackwell.
#define FIT_BLOCKS (RGB && SKIP && LEVEL >= 1000 ? 1 : 2)

#if HALF_G
typedef half_bits G;
#else
typedef float G;
#endif

// Four neighbouring numbers as they lie in memory.
template <typename X>
struct Four;
template <>
struct Four<float> {
    float4 v;
    __device__ __forceinline__ void load(const float* from) { v = *reinterpret_cast<const float4*>(from); }
    __device__ __forceinline__ void get(float (&to)[4]) const { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }
};
template <>
struct Four<half_bits> {
    uint2 v;
    __device__ __forceinline__ void load(const half_bits* from) { v = *reinterpret_cast<const uint2*>(from); }
    __device__ __forceinline__ void get(float (&to)[4]) const { from_half2(v.x, to[0], to[1]), from_half2(v.y, to[2], to[3]); }
};

// Sums over the threads of four channels, of a block's `rows` rows of them; `lanes` threads are a row.
__device__ __forceinline__ void add_up(const float (*shared)[4 * THREADS], int which, int rows, int lanes, int left, float* to) {
    const int width = 4 * lanes;
    for (int i = threadIdx.x; i < min(width, left); i += THREADS) {
        float total = 0.0f;
#pragma unroll 8
        for (int row = 0; row < rows; ++row) total += shared[which][row * width + i];
        to[i] = total;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, FIT_BLOCKS) gradient_activation(
    const G* __restrict__ g, const float* __restrict__ style, const half_bits* __restrict__ z,
    const float* __restrict__ noise, const float* __restrict__ bias, const float* __restrict__ demod,
    half_bits* __restrict__ u, float* __restrict__ style_sums, float* __restrict__ demod_sums,
#if RGB
    const float* __restrict__ picture_gradient, const float* __restrict__ planes, const float* __restrict__ rgb_weight,
    const float* __restrict__ rgb_style, float* __restrict__ rgb_sums, float rgb_clamp, float rgb_unit,
#endif
#if SKIP
    const half_bits* __restrict__ h, const float* __restrict__ skip_sums, half_bits* __restrict__ block_gradient, float skip_unit,
#endif
    int slices, int pixels, int channels, int pixels_per_block, int style_count, int demod_count, int sum_count, float unit,
    float gain, float clamp) {
    __shared__ float shared[SUMS][4 * THREADS];
#if RGB
    __shared__ float4 of_pixels[WARPS][32];  // the gradient of each plane, and the noise
#endif
    const int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32, sample = blockIdx.z;
    const int lanes = min(MOST_LANES, channels >> 2), rows = 32 / lanes;
    const int lane = in_warp % lanes, row = in_warp / lanes, first_channel = blockIdx.y * lanes * 4, channel = first_channel + lane * 4;
    const bool is_mine = row < rows && channel < channels;
    wait_for_previous_kernel();
    // dv times demod is what is stored, so that demod is in the factors of dz, but for dz that is stored itself.
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f}, b[4] = {}, s[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    if (is_mine && u) load_many(demod + (size_t)sample * demod_count + channel, d), load_many(bias + channel, b);
    if (is_mine && style) load_many(style + (size_t)sample * style_count + channel, s);
    float style_sum[4] = {}, demod_sum[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) s[i] *= SKIP ? unit : unit * d[i];
#if RGB
    float w[COLOURS][4] = {}, rgb_s[4] = {}, rgb_sum[4] = {};
    planes += (size_t)sample * COLOURS * pixels, picture_gradient += (size_t)sample * COLOURS * pixels;
    if (is_mine) {
        load_many(rgb_style + (size_t)sample * style_count + channel, rgb_s);
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) load_many(rgb_weight + k * channels + channel, w[k]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) rgb_s[i] *= SKIP ? 1.0f : d[i];
#endif
    const bool has_g = g, has_u = u;
#if SKIP
    const bool has_skip = skip_sums, has_block = block_gradient;
#endif
    const size_t step = (size_t)gridDim.z * pixels * channels, own = (size_t)sample * pixels * channels + channel;
    g += own, z += own, u += own;
#if SKIP
    h += own, skip_sums += own, block_gradient += own;
#endif
    const int run = min(32, max(rows, (pixels_per_block + WARPS - 1) / WARPS));
    const int end = min(pixels, ((int)blockIdx.x + 1) * pixels_per_block);
    const int first_run = blockIdx.x * pixels_per_block + warp * run;
#if RGB
    // A lane loads what a pixel of the next run has for all of its channels, while this run is computed.
    float dy[COLOURS] = {}, plane[COLOURS] = {}, next_noise = 0.0f;
    auto load_next = [&](int pixel, int until) {
        if (pixel >= until) return;
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) plane[k] = planes[k * pixels + pixel], dy[k] = picture_gradient[k * pixels + pixel];
        if (noise) next_noise = noise[pixel];
    };
    load_next(first_run + in_warp, min(end, first_run + run));
#endif
    for (int start = first_run; start < end; start += WARPS * run) {
        const int until = min(end, start + run);
#if RGB
        __syncwarp();
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) dy[k] = fabsf(plane[k]) < rgb_clamp ? dy[k] * rgb_unit : 0.0f;
        of_pixels[warp][in_warp] = make_float4(dy[0], dy[1], dy[2], next_noise);
        __syncwarp();
        load_next(start + WARPS * run + in_warp, min(end, start + WARPS * run + run));
#endif
        if (!is_mine) continue;
        auto go_back = [&](int pixel, const float(&up)[4], const float(&result)[4], const float(&output)[4], const float(&skip)[4], float n) {
            const unsigned place = (unsigned)pixel * channels;
#if RGB
            const float4 of_pixel = of_pixels[warp][pixel - start];
            n = of_pixel.w;
#endif
            float out[4], dh[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                style_sum[i] = fmaf(output[i], up[i], style_sum[i]);
                dh[i] = up[i] * s[i];
#if RGB
                const float t = fmaf(w[2][i], of_pixel.z, fmaf(w[1][i], of_pixel.y, w[0][i] * of_pixel.x));
                rgb_sum[i] = fmaf(output[i], t, rgb_sum[i]);
                dh[i] = fmaf(t, rgb_s[i], dh[i]);
#endif
#if SKIP
                dh[i] = fmaf(skip_unit, skip[i], dh[i]);
#endif
                const float dz = fabsf(result[i]) < clamp ? dh[i] * (SKIP ? d[i] : 1.0f) : 0.0f;
                out[i] = dz * (result[i] > 0.0f ? gain : SLOPE * gain);
                // dv times the v before the activation is dz times the v after it.
                demod_sum[i] = fmaf(dz, result[i], fmaf(out[i], -n - b[i], demod_sum[i]));
            }
            if (has_u) store_many(u + place, out);
#if SKIP
            if (has_block) store_many(block_gradient + place, dh);
#endif
        };
        if (!HALF_G && slices > 1) {
            // Slices are many where pixels are few.
            for (int pixel = start + row; pixel < until; pixel += rows) {
                const unsigned place = (unsigned)pixel * channels;
                float up[4], result[4], output[4], skip[4] = {};
                load_many(g + place, up), load_many(z + place, result);
                const float n = noise ? noise[pixel] : 0.0f;
#pragma unroll 8
                for (int slice = 1; slice < slices; ++slice) {
                    float q[4];
                    load_many(g + slice * step + place, q);
#pragma unroll
                    for (int i = 0; i < 4; ++i) up[i] += q[i];
                }
#if SKIP
                load_many(h + place, output);
                if (has_skip) load_many(skip_sums + place, skip);
                go_back(pixel, up, result, output, skip, n);
#else
                go_back(pixel, up, result, result, skip, n);
#endif
            }
            continue;
        }
        for (int first = start + row; first < until; first += TURNS * rows) {
            Four<G> gs[TURNS] = {};
            Four<half_bits> zs[TURNS] = {};
            float n[TURNS] = {};
#if SKIP
            Four<half_bits> hs[TURNS] = {};
            Four<float> skips[TURNS] = {};
#endif
#pragma unroll
            for (int turn = 0; turn < TURNS; ++turn) {
                const int pixel = first + turn * rows;
                const unsigned place = (unsigned)pixel * channels;
                if (pixel >= until) continue;
                zs[turn].load(z + place);
                if (has_g) gs[turn].load(g + place);
                if (!RGB && noise) n[turn] = noise[pixel];
#if SKIP
                hs[turn].load(h + place);
                if (has_skip) skips[turn].load(skip_sums + place);
#endif
            }
#pragma unroll
            for (int turn = 0; turn < TURNS; ++turn) {
                const int pixel = first + turn * rows;
                if (pixel >= until) continue;
                float up[4], result[4], output[4], skip[4] = {};
                gs[turn].get(up), zs[turn].get(result);
#if SKIP
                hs[turn].get(output), skips[turn].get(skip);
                go_back(pixel, up, result, output, skip, n[turn]);
#else
                go_back(pixel, up, result, result, skip, n[turn]);
#endif
            }
        }
    }
    if (row < rows) {
        // demod is in it twice.
#pragma unroll
        for (int i = 0; i < 4; ++i) style_sum[i] *= unit, demod_sum[i] /= d[i] * d[i];
        const int place = 4 * ((warp * rows + row) * lanes + lane);
        store_many(shared[0] + place, style_sum);
        store_many(shared[1] + place, demod_sum);
#if RGB
        store_many(shared[2] + place, rgb_sum);
#endif
    }
    __syncthreads();
    const size_t to = (size_t)sample * sum_count + (size_t)blockIdx.x * channels + first_channel;
    const int left = channels - first_channel;
    if (style_sums) add_up(shared, 0, WARPS * rows, lanes, left, style_sums + to);
    if (demod_sums) add_up(shared, 1, WARPS * rows, lanes, left, demod_sums + to);
#if RGB
    add_up(shared, 2, WARPS * rows, lanes, left, rgb_sums + to);
#endif
}
