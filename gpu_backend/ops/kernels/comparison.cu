// Differences between two arrays on the device, for the self-check (gpu_backend/cuda/driver/comparison.py). An array may consist of
// parts of `count` numbers each, of which the sum is compared. Each block writes, over the numbers whose expected value is finite,
//     {sum of (got - expected)^2, sum of expected^2, count of nonfinite numbers in got}, and over all numbers
//     {count of numbers that differ in any bit}
// The order of all sums is fixed. kind: numbers are fp32 (0), fp16 (1) or e4m3 (2).
// Grid: any number of blocks; they stride over the array.
#define HALF 0
#include "parts/e4m3.cuh"

enum : int { THREADS = 256 };

enum Kind : int { FP32, FP16, E4M3 };

__device__ __forceinline__ float number_at(const void* from, int kind, size_t place) {
    if (kind == E4M3) return from_e4m3(static_cast<const e4m3_bits*>(from)[place]);
    return kind == FP16 ? from_half(static_cast<const half_bits*>(from)[place]) : static_cast<const float*>(from)[place];
}

__device__ __forceinline__ float number_at(const void* from, int parts, int kind, size_t count, size_t place) {
    float sum = number_at(from, kind, place);
    for (int part = 1; part < parts; ++part) sum += number_at(from, kind, part * count + place);
    return sum;
}

__device__ __forceinline__ bool is_finite(float v) { return fabsf(v) <= 3.402823466e+38f; }

extern "C" __global__ void __launch_bounds__(THREADS, 4) comparison(
    const void* __restrict__ got, const void* __restrict__ expected, double* __restrict__ sums, int got_parts,
    int expected_parts, int kind, unsigned count) {
    __shared__ double held[THREADS / 32][4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    double mine[4] = {};
    for (size_t place = blockIdx.x * (size_t)THREADS + threadIdx.x; place < count; place += gridDim.x * (size_t)THREADS) {
        const float one = number_at(got, got_parts, kind, count, place);
        const float other = number_at(expected, expected_parts, kind, count, place);
        if (is_finite(other)) {
            const double delta = (double)one - (double)other;
            if (is_finite(one)) mine[0] += delta * delta;
            else mine[2] += 1.0;
            mine[1] += (double)other * other;
        }
        if (__float_as_uint(one) != __float_as_uint(other)) mine[3] += 1.0;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int far = 16; far > 0; far >>= 1) mine[i] += __shfl_xor_sync(0xffffffffu, mine[i], far);
        if (lane == 0) held[warp][i] = mine[i];
    }
    __syncthreads();
    if (threadIdx.x < 4) {
        double sum = 0.0;
        for (int w = 0; w < THREADS / 32; ++w) sum += held[w][threadIdx.x];
        sums[blockIdx.x * 4 + threadIdx.x] = sum;
    }
}
