// y = x * rsqrt(mean(x^2) + 1e-8) over the features of each row, in fp32. One block per row.
enum : int { THREADS = 256 };
#define EPSILON 1e-8f

extern "C" __global__ void __launch_bounds__(THREADS) normalize_2nd_moment(const float* x, float* y, int features) {
    __shared__ float of_warp[THREADS / 32];
    const float* from = x + (size_t)blockIdx.x * features;
    float* to = y + (size_t)blockIdx.x * features;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) sum = fmaf(from[i], from[i], sum);
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = sum;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < THREADS / 32; ++warp) total += of_warp[warp];
    const float scale = rsqrtf(total / (float)features + EPSILON);
    for (int i = threadIdx.x; i < features; i += THREADS) to[i] = from[i] * scale;
}
