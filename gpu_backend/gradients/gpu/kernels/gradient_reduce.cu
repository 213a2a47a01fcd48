// Adds the slices of gradient_conv's sums into the first, for readers that need every number several times.
#define HALF 1
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) gradient_reduce(float* sums, int quads, int slices) {
    const int index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= quads) return;
    wait_for_previous_kernel();
    float total[4];
    load_many(sums + (size_t)index * 4, total);
#pragma unroll 8
    for (int slice = 1; slice < slices; ++slice) {
        float q[4];
        load_many(sums + ((size_t)slice * quads + index) * 4, q);
#pragma unroll
        for (int i = 0; i < 4; ++i) total[i] += q[i];
    }
    store_many(sums + (size_t)index * 4, total);
}
