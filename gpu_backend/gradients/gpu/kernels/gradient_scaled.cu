// A sample's numbers divided by the largest magnitude of them, of which gradient_largest left parts[sample][block], or by `least`; that divisor
// goes to largest[sample]. `quads` are a sample's numbers / 4. Grid: as of gradient_largest.
#define HALF 0
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256
#define TURNS 4  // loads of a thread that are under way together

extern "C" __global__ void __launch_bounds__(THREADS) gradient_scaled(
    const float* __restrict__ from, const float* __restrict__ parts, float* __restrict__ largest, float* __restrict__ to, int quads,
    float least) {
    __shared__ float warps[THREADS / 32];
    const int step = gridDim.x * THREADS;
    const size_t sample = (size_t)blockIdx.y * quads * 4;
    from += sample, to += sample, parts += (size_t)blockIdx.y * gridDim.x;
    wait_for_previous_kernel();
    float divisor = least;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) divisor = fmaxf(divisor, parts[i]);
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) divisor = fmaxf(divisor, __shfl_xor_sync(0xffffffffu, divisor, other));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = divisor;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < THREADS / 32; ++i) divisor = fmaxf(divisor, warps[i]);
    if (blockIdx.x == 0 && threadIdx.x == 0) largest[blockIdx.y] = divisor;
    const float factor = 1.0f / divisor;
    for (int quad = blockIdx.x * THREADS + threadIdx.x; quad < quads; quad += TURNS * step) {
        float v[TURNS][4];
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) load_many(from + 4 * (size_t)min(quad + turn * step, quads - 1), v[turn]);
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
            for (int i = 0; i < 4; ++i) v[turn][i] *= factor;
            if (quad + turn * step < quads) store_many(to + 4 * (size_t)(quad + turn * step), v[turn]);
        }
    }
}
