// The 1 x 1 convolution of gpu_backend/ops/to_rgb.py, styled and not demodulated, as one part for to_rgb.cu:
//     rgb_parts[b][pixel][i] = sum_o rgb_weight[i][o] * rgb_style[b][o] * y_raw[b][pixel][o]
// Macros: HALF, IMG_CHANNELS, LANES: neighbouring threads that share a pixel, a power of two up to 32.
// Grid: pixels of a sample, 256 / LANES a block; samples.
#include "parts/types.cuh"

extern "C" __global__ void __launch_bounds__(256) plain_to_rgb(
    const T* __restrict__ y_raw, const float* __restrict__ rgb_weight, const float* __restrict__ rgb_style,
    float* __restrict__ rgb_parts, int side, int cout, int style_stride) {
    const int b = blockIdx.y, area = side * side;
    const int pixel = (blockIdx.x * 256 + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    const int held = pixel < area ? pixel : area - 1;  // every lane takes part in the shuffles
    const T* from = y_raw + ((size_t)b * area + held) * cout;
    float sum[IMG_CHANNELS];
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) sum[i] = 0.0f;
    for (int o = lane * 4; o < cout; o += LANES * 4) {
        float v[4], style[4], weight[4];
        load_many<4>(from + o, v);
        load_many<4>(rgb_style + (size_t)b * style_stride + o, style);
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) {
            load_many<4>(rgb_weight + i * cout + o, weight);
#pragma unroll
            for (int e = 0; e < 4; ++e) sum[i] += weight[e] * (style[e] * v[e]);
        }
    }
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i)
#pragma unroll
        for (int other = LANES / 2; other > 0; other /= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], other);
    if (pixel < area && lane == 0) {
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) rgb_parts[((size_t)b * area + pixel) * IMG_CHANNELS + i] = sum[i];
    }
}
