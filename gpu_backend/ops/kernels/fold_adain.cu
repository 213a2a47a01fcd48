// The normalisation of a StyleGAN1 layer as part of the convolution that reads it, in place of a pass over the layer. adain.cu
// computes y = factor (x - mean) + shift. For the convolution of y with W, W' = factor W, of each input channel c:
//     conv(y, W) = conv(x, W') + sum over taps inside the picture of s[tap],   s[tap][o] = sum_c W[tap][o][c] shift[c] - W'[tap][o][c] mean[c]
// s takes W' as it is rounded to fp16, so that its rounding errors multiply x - mean, as those of W multiply y.
//
// A block merges the moments of INPUTS channels and makes the weights of OUTPUTS output channels, eight numbers a thread. Its sums
// over INPUTS channels are one of `tap_sums`, which the convolution adds up: (input blocks, 9, rows).
//
// Macros: HALF (1); INPUTS 16|32; CHANNELS, DEPTH: of the tile of the convolution, whose weights `folded` are packed as in
// gpu_backend/cuda/launches/packed_weights.py, (rows / CHANNELS, steps, 9, CHANNELS, DEPTH).
// weight: fp32, (9, rows, columns), zeros in padding channels; columns is a multiple of INPUTS, rows one of CHANNELS.
// moments: (parts, cin), see Partials. y: null, or gets the layer, which nothing in a frame reads.
// Grid: blocks of input channels, blocks of output channels. The batch is one picture.
#include "parts/adain.cuh"
#include "parts/merged_moments.cuh"
#include "parts/swizzle.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    TAPS = 9,
    GROUPS = INPUTS / 8,
    THREADS = 288,
    OUTPUTS = THREADS / (TAPS * GROUPS),
    SLICES = THREADS / (INPUTS / 2),
    PART_LOADS = 8,
};
static_assert(HALF && THREADS == TAPS * GROUPS * OUTPUTS && CHANNELS % OUTPUTS == 0, "every thread makes eight weights of one output");

extern "C" __global__ void __launch_bounds__(THREADS) fold_adain(
    const T* __restrict__ x, T* __restrict__ y, const float2* __restrict__ moments, const float* __restrict__ style,
    const float* __restrict__ weight, T* __restrict__ folded, float* __restrict__ tap_sums, int parts, int part_rows, int part_columns,
    int side, int cin, int channels, int rows, int columns, int steps, float epsilon) {
    __shared__ __align__(16) float2 shared_sums[SLICES][INPUTS];
    __shared__ __align__(16) float shared_mean[INPUTS], shared_factor[INPUTS], shared_shift[INPUTS];
    const int tid = threadIdx.x, group = tid % GROUPS, tap = tid / GROUPS % TAPS;
    const int output = blockIdx.y * OUTPUTS + tid / (GROUPS * TAPS);
    const int first_channel = blockIdx.x * INPUTS, channel = first_channel + group * 8;
    float numbers[8];
    load_many<8>(weight + ((size_t)tap * rows + output) * columns + channel, numbers);
    wait_for_previous_kernel();

    const int own = first_channel + tid;
    float scale = 0.0f, shift = 0.0f;
    if (tid < INPUTS && own < channels) scale = style[own], shift = style[channels + own];
    const Partials partials = {moments + first_channel, parts, cin, cin - first_channel, part_rows, part_columns, side};
    sum_partials<INPUTS, SLICES, PART_LOADS>(partials, tid, shared_sums, shared_mean);
    __syncthreads();
    if (tid < INPUTS) {
        const float2 found = mean_and_variance(tid, side, shared_sums, shared_mean);
        shared_mean[tid] = own < channels ? found.x : 0.0f;
        shared_factor[tid] = own < channels ? scale * rsqrtf(found.y + epsilon) : 0.0f;
        shared_shift[tid] = shift;
    }
    __syncthreads();

    float sum = 0.0f;
    unsigned words[4];
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
        const int at = group * 8 + e;
        words[e / 2] = to_half2(numbers[e] * shared_factor[at], numbers[e + 1] * shared_factor[at + 1]);
        float low, high;
        from_half2(words[e / 2], low, high);
        sum += fmaf(numbers[e], shared_shift[at], -low * shared_mean[at]);
        sum += fmaf(numbers[e + 1], shared_shift[at + 1], -high * shared_mean[at + 1]);
    }
    const int step = channel / DEPTH, row = output % CHANNELS;
    if (step < steps) {
        const size_t place = ((size_t)(output / CHANNELS * steps + step) * TAPS + tap) * CHANNELS + row;
        uint4* const to = reinterpret_cast<uint4*>(folded + place * DEPTH) + swizzled<DEPTH * 2>(channel % DEPTH / 8, row);
        *to = make_uint4(words[0], words[1], words[2], words[3]);
    }
#pragma unroll
    for (int other = 1; other < GROUPS; other <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (group == 0) tap_sums[((size_t)blockIdx.x * TAPS + tap) * rows + output] = sum;

    if (y == nullptr || blockIdx.y > 0 || channel >= cin) return;
    for (int i = tid / GROUPS; i < side * side; i += THREADS / GROUPS) {
        float v[8];
        load_many<8>(x + (size_t)i * cin + channel, v);
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = fmaf(v[e] - shared_mean[group * 8 + e], shared_factor[group * 8 + e], shared_shift[group * 8 + e]);
        store_many<8>(y + (size_t)i * cin + channel, v);
    }
}
