// The picture of a block: toRGB of its features, and the doubled picture of the block before.
//
//     planes[k] = sum_c z_c style_c W[k, c] + bias[k],   picture[k] = clamp(planes[k]) + doubled(before)[k]
//
// Pictures and planes are fp32, [sample][3][side][side]. `filter` has the resampling filter's taps, turned and times 2.
// Eight threads a pixel. Grid: groups of 32 pixels, samples; 12 bytes of dynamic shared memory for each channel.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define LANES 8
#define COLOURS 3

__device__ __forceinline__ float total_of_lanes(float v) {
#pragma unroll
    for (int other = LANES / 2; other > 0; other >>= 1) v += __shfl_xor_sync(0xffffffffu, v, other);
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS) gradient_picture(
    const half_bits* __restrict__ z, const float* __restrict__ style, const float* __restrict__ weight,
    const float* __restrict__ bias, const float* __restrict__ filter, const float* __restrict__ before,
    float* __restrict__ planes, float* __restrict__ picture, int side, int channels, int taps, int left, int style_count,
    float clamp) {
    extern __shared__ float4 shared[];
    float* scaled = reinterpret_cast<float*>(shared);
    const int sample = blockIdx.y, pixels = side * side;
    wait_for_previous_kernel();
    for (int i = threadIdx.x; i < COLOURS * channels; i += THREADS)
        scaled[i] = weight[i] * style[(size_t)sample * style_count + i % channels];
    __syncthreads();
    const int pixel = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const bool is_mine = pixel < pixels;
    float sum[COLOURS] = {}, doubled[COLOURS] = {};
    if (is_mine) {
        const half_bits* from = z + ((size_t)sample * pixels + pixel) * channels;
        for (int channel = lane * 8; channel < channels; channel += LANES * 8) {
            float v[8], w[8];
            load_many(from + channel, v);
#pragma unroll
            for (int k = 0; k < COLOURS; ++k) {
                load_many(scaled + k * channels + channel, w);
#pragma unroll
                for (int i = 0; i < 8; ++i) sum[k] = fmaf(v[i], w[i], sum[k]);
            }
        }
        if (before) {
            const int row = pixel / side, column = pixel % side, half_side = side / 2;
            const float* first = before + (size_t)sample * COLOURS * half_side * half_side;
            for (int t = lane; t < taps * taps; t += LANES) {
                const int i = t / taps, j = t % taps, y = row + i - left, x = column + j - left;
                if ((y & 1) || (x & 1) || (unsigned)y >= (unsigned)side || (unsigned)x >= (unsigned)side) continue;
                const float share = filter[i] * filter[j];
#pragma unroll
                for (int k = 0; k < COLOURS; ++k)
                    doubled[k] = fmaf(share, first[(k * half_side + y / 2) * half_side + x / 2], doubled[k]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < COLOURS; ++k) {
        const float plane = total_of_lanes(sum[k]) + bias[k], rest = total_of_lanes(doubled[k]);
        if (is_mine && lane == k) {
            const size_t place = ((size_t)sample * COLOURS + k) * pixels + pixel;
            planes[place] = plane, picture[place] = bounded(plane, clamp) + rest;
        }
    }
}
