// Mean, factor and shift of every channel of gpu_backend/ops/adain.py, for pictures that one block cannot hold: a block
// goes through a chunk of pixels and sums 8 GROUPS channels of what is normalised, about its first pixel, so that a
// channel which hardly varies keeps its digits. The last block of a picture's channels puts all chunks together, in their
// order (Chan et al. 1983): mean = sum n m / N, M2 = sum M2 + sum n (m - mean)^2.
//
// Macros: HALF, ACTIVATION, BLURS_BIAS. GROUPS: of eight channels, a power of two up to 8.
// x: (batch or, with is_shared, 1, side, side, cout). bias, strength: (cout,). affine: as in parts/adain.cuh.
// partials: (batch, chunks, cout), mean and M2. counters: (batch, channel blocks), 0 before and after.
// Shared memory: `chunk` floats. Grid: chunks, channel blocks, pictures.
// part: adain

#define THREADS 256
#define WARPS (THREADS / 32)
#define LANES (THREADS / GROUPS)
#define CHANNELS (8 * GROUPS)
#define SLICES (THREADS / CHANNELS)
#define AT_ONCE 4  // loads of a thread in flight

extern "C" __global__ void __launch_bounds__(THREADS, 3) adain_moments(
    const T* __restrict__ x, float* __restrict__ affine, const float* __restrict__ style, const float* __restrict__ bias,
    const float* __restrict__ strength, const float* __restrict__ noise, const float* __restrict__ noise_gain,
    const unsigned* __restrict__ noise_source, float2* partials, unsigned* counters, int noise_layer, int is_shared,
    int side, int cout, int channels, int style_stride, int chunk, float gain, float clamp, float epsilon) {
    extern __shared__ float shared_noise[];
    __shared__ float shared_sums[2][WARPS][CHANNELS];
    __shared__ float shared_slices[2][SLICES][CHANNELS];
    __shared__ bool is_last;
    const int tid = threadIdx.x, group = tid % GROUPS, area = side * side;
    const int channel = (blockIdx.y * GROUPS + group) * 8, sample = blockIdx.z;
    const bool there = channel < cout;
    const int first = blockIdx.x * chunk, count = min(chunk, area - first);
    const T* const from = x + ((size_t)(is_shared ? 0 : sample) * area + first) * cout + channel;

    for (int i = tid; i < count; i += THREADS) {
        shared_noise[i] = layer_noise(noise, noise_gain, noise_source, noise_layer, first + i);
    }
    float biases[8], strengths[8], about[8] = {}, sums[8] = {}, squares[8] = {};
    load_table<8>(bias, channel, there, biases);
    load_table<8>(strength, channel, there, strengths);
    __syncthreads();
    if (there) {
        load_many<8>(from, about);
        finish_before_normal<8>(about, biases, strengths, shared_noise[0], bias_share(first, side), gain, clamp);
        for (int begin = tid / GROUPS; begin < count; begin += AT_ONCE * LANES) {
            uint4 words[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                if (begin + k * LANES < count) words[k] = load_eight(from + (size_t)(begin + k * LANES) * cout);
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const int i = begin + k * LANES;
                if (i >= count) continue;
                float v[8];
                unpack(words[k], v);
                finish_before_normal<8>(v, biases, strengths, shared_noise[i], bias_share(first + i, side), gain, clamp);
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    const float apart = v[e] - about[e];
                    sums[e] += apart;
                    squares[e] = fmaf(apart, apart, squares[e]);
                }
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
#pragma unroll
        for (int other = 16; other >= GROUPS; other >>= 1) {
            sums[e] += __shfl_xor_sync(0xffffffffu, sums[e], other);
            squares[e] += __shfl_xor_sync(0xffffffffu, squares[e], other);
        }
    }
    if (tid % 32 < GROUPS) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            shared_sums[0][tid / 32][group * 8 + e] = sums[e];
            shared_sums[1][tid / 32][group * 8 + e] = squares[e];
        }
    }
    if (tid < GROUPS) {
#pragma unroll
        for (int e = 0; e < 8; ++e) shared_slices[0][0][group * 8 + e] = about[e];
    }
    __syncthreads();
    const int own = blockIdx.y * CHANNELS + tid % CHANNELS;
    if (tid < CHANNELS && own < cout) {
        float sum = 0.0f, square = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) sum += shared_sums[0][w][tid], square += shared_sums[1][w][tid];
        const float apart = sum / (float)count, rest = square - sum * apart;
        partials[((size_t)sample * gridDim.x + blockIdx.x) * cout + own] =
            make_float2(shared_slices[0][0][tid] + apart, rest < 0.0f ? 0.0f : rest);
    }

    __threadfence();
    __syncthreads();
    if (tid == 0) is_last = atomicInc(counters + sample * gridDim.y + blockIdx.y, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    float apart_sum = 0.0f, square_sum = 0.0f, about_all = 0.0f;
    if (own < cout) {
        const float2* const parts = partials + (size_t)sample * gridDim.x * cout + own;
        about_all = __ldcg(parts).x;
#pragma unroll 8
        for (int p = tid / CHANNELS; p < gridDim.x; p += SLICES) {
            const float2 part = __ldcg(parts + (size_t)p * cout);
            const float pixels = (float)min(chunk, area - p * chunk), apart = part.x - about_all;
            apart_sum = fmaf(pixels, apart, apart_sum);
            square_sum += fmaf(pixels * apart, apart, part.y);
        }
    }
    shared_slices[0][tid / CHANNELS][tid % CHANNELS] = apart_sum;
    shared_slices[1][tid / CHANNELS][tid % CHANNELS] = square_sum;
    __syncthreads();
    if (tid >= CHANNELS || own >= cout) return;
    apart_sum = square_sum = 0.0f;
#pragma unroll
    for (int s = 0; s < SLICES; ++s) apart_sum += shared_slices[0][s][tid], square_sum += shared_slices[1][s][tid];
    const float apart = apart_sum / (float)area, rest = square_sum - apart_sum * apart;
    const Affine found = affine_of(
        about_all + apart, (rest < 0.0f ? 0.0f : rest) / (float)area, style + (size_t)sample * style_stride, own,
        channels, epsilon);
    float* const to = affine + (size_t)sample * 3 * cout + own;
    to[0] = found.mean, to[cout] = found.factor, to[2 * cout] = found.shift;
}
