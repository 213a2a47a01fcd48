// A step of Adam on the rows of w that may change, as gpu_backend/gradients/solvers.py does it: moments of the gradient in
// deviations of w, the second one number a row. Everything that changes lies on the device. One block a row.
//
//     mean += 0.1 (g - mean),   square += 0.05 (average of g^2 - square)
//     shift -= rate * mean / (1 - 0.9^n) / (sqrt(square / (1 - 0.95^n)) + 1e-12),   w = start + shift * deviation
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS) gradient_adam(
    const float* __restrict__ ws_gradient, const float* __restrict__ start, const float* __restrict__ deviation,
    float* __restrict__ mean, float* __restrict__ square, float* __restrict__ count, float* __restrict__ shift,
    float* __restrict__ ws, int first_row, int w_dim, float rate) {
    __shared__ float parts[THREADS / 32];
    const int row = blockIdx.x;
    const size_t place = (size_t)(first_row + row) * w_dim, own = (size_t)row * w_dim;
    wait_for_previous_kernel();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < w_dim; i += THREADS) {
        const float g = ws_gradient[place + i] * deviation[i];
        sum = fmaf(g, g, sum);
    }
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) sum += parts[i];
    const float steps = count[row] + 1.0f, before = square[row];
    __syncthreads();
    const float moment = fmaf(0.05f, sum / (float)w_dim - before, before);
    if (threadIdx.x == 0) count[row] = steps, square[row] = moment;
    const float length = rate / (1.0f - powf(0.9f, steps)) / (sqrtf(moment / (1.0f - powf(0.95f, steps))) + 1e-12f);
    for (int i = threadIdx.x; i < w_dim; i += THREADS) {
        const float g = ws_gradient[place + i] * deviation[i];
        const float m = fmaf(0.1f, g - mean[own + i], mean[own + i]);
        const float moved = shift[own + i] - length * m;
        mean[own + i] = m, shift[own + i] = moved;
        ws[place + i] = fmaf(moved, deviation[i], start[place + i]);
    }
}
