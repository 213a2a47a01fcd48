// The gradient of every row of w: sum over the row's layers of A^T (gradient of style), times `unit`; toRGB's only where
// it has one.
// Grid: groups of 32 dimensions of w, rows of w, samples; block 32 x 32.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define SHARES 32

extern "C" __global__ void __launch_bounds__(32 * SHARES) gradient_affine_adjoint(
    const float* __restrict__ style_gradients, const float* __restrict__ affine, const int* __restrict__ table,
    float* __restrict__ ws_gradient, int w_dim, int layers, int style_count, int with_picture,
    float unit) {
    __shared__ float parts[SHARES][32];
    const int dimension = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    wait_for_previous_kernel();
    for (int first = 0; first < layers; first += 32) {
        // Each lane asks for one layer, so that the table is read once.
        const int asked = min(first + (int)threadIdx.x, layers - 1);
        const int* asked_layer = table + asked * LAYER_INTS;
        const bool is_wanted = first + (int)threadIdx.x < layers && asked_layer[W_ROW] == (int)blockIdx.y &&
                               (asked_layer[OUTPUTS] != 0 || with_picture);
        for (unsigned wanted = __ballot_sync(0xffffffffu, is_wanted); wanted; wanted &= wanted - 1) {
            const int* layer = table + (first + __ffs(wanted) - 1) * LAYER_INTS;
            const float* column = affine + (size_t)layer[AFFINE] * w_dim + min(dimension, w_dim - 1);
            const float* gradient = style_gradients + (size_t)blockIdx.z * style_count + layer[STYLE];
            const int inputs = layer[INPUTS];
#pragma unroll 16
            for (int i = threadIdx.y; i < inputs; i += SHARES) sum = fmaf(gradient[i], column[(size_t)i * w_dim], sum);
        }
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || dimension >= w_dim) return;
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SHARES; ++i) sum += parts[i][threadIdx.x];
    ws_gradient[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * w_dim + dimension] = unit * sum;
}
