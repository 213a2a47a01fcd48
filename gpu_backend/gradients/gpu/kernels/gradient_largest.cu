// The largest magnitude of each block's part of a sample's numbers, for gradient_scaled: parts[sample][block]. `quads` are a sample's numbers / 4.
// Grid: blocks, samples.
#define HALF 0
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define TURNS 4  // loads of a thread that are under way together

extern "C" __global__ void __launch_bounds__(THREADS) gradient_largest(const float* __restrict__ from, float* __restrict__ parts, int quads) {
    __shared__ float warps[THREADS / 32];
    const int step = gridDim.x * THREADS;
    from += (size_t)blockIdx.y * quads * 4;
    wait_for_previous_kernel();
    float largest = 0.0f;
    for (int quad = blockIdx.x * THREADS + threadIdx.x; quad < quads; quad += TURNS * step) {
        float v[TURNS][4];
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) load_many(from + 4 * (size_t)min(quad + turn * step, quads - 1), v[turn]);
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll
            for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(v[turn][i]));
    }
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, other));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; ++i) largest = fmaxf(largest, warps[i]);
        parts[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = largest;
    }
}
