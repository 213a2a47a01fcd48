// The end of a StyleGAN1 layer, gpu_backend/ops/adain.py: noise, bias, activation, instance normalisation and style.
//     y = (v - mean) factor + shift,    v = act(x + b + strength noise),    factor = scale / sqrt(variance + epsilon)
// With HELD a block holds all pixels of 8 GROUPS channels of a picture, HELD a thread, and takes their mean and then their
// variance itself; without, `affine` has them from adain_moments, and a block has a chunk of pixels. With IMG_CHANNELS it
// makes a share of a picture, and stores the layer only where y is not null:
//     rgb_parts[channel block][picture][pixel][i] = rgb_gain sum_o rgb_weight[i][o] y[pixel][o]
//
// Macros: HALF (1), ACTIVATION, BLURS_BIAS, GROUPS, THREADS. HELD: 0 for none. IMG_CHANNELS: 0 for none, as with HELD.
// x: (batch or, with is_shared, 1, side, side, cout). style: with HELD only.
// Shared memory: `chunk` floats; with HELD that is all pixels. Grid: chunks, channel blocks, pictures.
// part: adain

#define WARPS (THREADS / 32)
#define LANES (THREADS / GROUPS)
#define CHANNELS (8 * GROUPS)
#define AT_ONCE (HELD ? HELD : 4)  // loads of a thread in flight

#if HELD
__shared__ float warp_sums[WARPS][CHANNELS];
__shared__ float totals[CHANNELS];

// sums: of a thread's pixels, then of all pixels. All threads of the block come here.
__device__ __forceinline__ void total_over_pixels(float (&sums)[8]) {
    const int tid = threadIdx.x, group = tid % GROUPS;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
#pragma unroll
        for (int other = 16; other >= GROUPS; other >>= 1) sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], other);
    }
    if (tid % 32 < GROUPS) {
#pragma unroll
        for (int e = 0; e < 8; ++e) warp_sums[tid / 32][group * 8 + e] = sums[e];
    }
    __syncthreads();
    if (tid < CHANNELS) {
        float sum = 0.0f;
        for (int w = 0; w < WARPS; ++w) sum += warp_sums[w][tid];
        totals[tid] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 8; ++e) sums[e] = totals[group * 8 + e];
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, HELD ? 1 : IMG_CHANNELS ? 2 : 3) adain(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ affine, const float* __restrict__ style,
    const float* __restrict__ bias, const float* __restrict__ strength, const float* __restrict__ noise,
    const float* __restrict__ noise_gain, const unsigned* __restrict__ noise_source, const float* __restrict__ rgb_weight,
    float* __restrict__ rgb_parts, int noise_layer, int is_shared, int side, int cout, int channels, int style_stride,
    int chunk, float gain, float clamp, float epsilon, float rgb_gain) {
    extern __shared__ float shared_noise[];
    const int tid = threadIdx.x, group = tid % GROUPS, area = side * side;
    const int channel = (blockIdx.y * GROUPS + group) * 8, sample = blockIdx.z;
    const bool there = channel < cout;
    const int first = blockIdx.x * chunk, count = min(chunk, area - first);
    const T* const from = x + ((size_t)(is_shared ? 0 : sample) * area + first) * cout + channel;

    for (int i = tid; i < count; i += THREADS) {
        shared_noise[i] = layer_noise(noise, noise_gain, noise_source, noise_layer, first + i);
    }
    float biases[8], strengths[8];
    load_table<8>(bias, channel, there, biases);
    load_table<8>(strength, channel, there, strengths);
    __syncthreads();

#if HELD
    float v[HELD][8], mean[8] = {}, squares[8] = {};
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        const int i = tid / GROUPS + k * LANES;
        if (there && i < count) {
            unpack(load_eight(from + (size_t)i * cout), v[k]);
            finish_before_normal<8>(v[k], biases, strengths, shared_noise[i], bias_share(i, side), gain, clamp);
        }
    }
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        if (!there || tid / GROUPS + k * LANES >= count) continue;
#pragma unroll
        for (int e = 0; e < 8; ++e) mean[e] += v[k][e];
    }
    total_over_pixels(mean);
#pragma unroll
    for (int e = 0; e < 8; ++e) mean[e] /= (float)area;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        if (!there || tid / GROUPS + k * LANES >= count) continue;
#pragma unroll
        for (int e = 0; e < 8; ++e) squares[e] = fmaf(v[k][e] - mean[e], v[k][e] - mean[e], squares[e]);
    }
    total_over_pixels(squares);
    float factor[8], shift[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const Affine found = affine_of(
            mean[e], squares[e] / (float)area, style + (size_t)sample * style_stride, channel + e, channels, epsilon);
        factor[e] = found.factor, shift[e] = found.shift;
    }
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        const int i = tid / GROUPS + k * LANES;
        if (!there || i >= count) continue;
#pragma unroll
        for (int e = 0; e < 8; ++e) v[k][e] = fmaf(v[k][e] - mean[e], factor[e], shift[e]);
        store_many<8>(y + ((size_t)sample * area + i) * cout + channel, v[k]);
    }
#else
    const float* const own = affine + (size_t)sample * 3 * cout;
    float mean[8], factor[8], shift[8];
    load_table<8>(own, channel, there, mean);
    load_table<8>(own + cout, channel, there, factor);
    load_table<8>(own + 2 * cout, channel, there, shift);
#if IMG_CHANNELS
    float rgb_of[IMG_CHANNELS][8], rgb_shift[IMG_CHANNELS];  // of v - mean, of the shifts
#pragma unroll
    for (int c = 0; c < IMG_CHANNELS; ++c) {
        load_table<8>(rgb_weight + c * cout, channel, there, rgb_of[c]);
        rgb_shift[c] = 0.0f;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            rgb_shift[c] = fmaf(rgb_of[c][e], rgb_gain * shift[e], rgb_shift[c]);
            rgb_of[c][e] *= rgb_gain * factor[e];
        }
    }
#endif
    for (int block_begin = 0; block_begin < count; block_begin += AT_ONCE * LANES) {
        const int begin = block_begin + tid / GROUPS;
        uint4 words[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            words[k] = make_uint4(0u, 0u, 0u, 0u);
            if (there && begin + k * LANES < count) words[k] = load_eight(from + (size_t)(begin + k * LANES) * cout);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const int i = min(begin + k * LANES, count - 1);
            const bool inside = begin + k * LANES < count;
            float v[8];
            unpack(words[k], v);
            finish_before_normal<8>(v, biases, strengths, shared_noise[i], bias_share(first + i, side), gain, clamp);
#if IMG_CHANNELS
            float rgb[IMG_CHANNELS];
#pragma unroll
            for (int c = 0; c < IMG_CHANNELS; ++c) {
                rgb[c] = rgb_shift[c];
#pragma unroll
                for (int e = 0; e < 8; ++e) rgb[c] = fmaf(rgb_of[c][e], v[e] - mean[e], rgb[c]);
#pragma unroll
                for (int other = GROUPS / 2; other > 0; other >>= 1) rgb[c] += __shfl_xor_sync(0xffffffffu, rgb[c], other);
            }
            if (group == 0 && inside) {
                const size_t pixel = ((size_t)blockIdx.y * gridDim.z + sample) * area + first + i;
#pragma unroll
                for (int c = 0; c < IMG_CHANNELS; ++c) rgb_parts[pixel * IMG_CHANNELS + c] = rgb[c];
            }
#else
            if (!there || !inside) continue;
#pragma unroll
            for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e] - mean[e], factor[e], shift[e]);
            store_many<8>(y + ((size_t)sample * area + first + i) * cout + channel, v);
#endif
        }
    }
#if IMG_CHANNELS
    if (y == nullptr || !there) return;
    load_table<8>(own + cout, channel, there, factor);
    load_table<8>(own + 2 * cout, channel, there, shift);
#pragma unroll 1
    for (int i = tid / GROUPS; i < count; i += LANES) {
        float v[8];
        unpack(load_eight(from + (size_t)i * cout), v);
        finish_before_normal<8>(v, biases, strengths, shared_noise[i], bias_share(first + i, side), gain, clamp);
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e] - mean[e], factor[e], shift[e]);
        store_many<8>(y + ((size_t)sample * area + first + i) * cout + channel, v);
    }
#endif
#endif
}
