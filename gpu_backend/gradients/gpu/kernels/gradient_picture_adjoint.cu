// The adjoint of doubling a picture: from the gradient of the picture at `side` to that of the picture at half of it.
//
//     to[y, x] = sum_ij f[i] f[j] from[2 y + left - i, 2 x + left - j]
//
// `filter` as in gradient_picture. A thread a number. Grid: threads of one plane, planes of all samples.
#include "parts/previous_kernel.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) gradient_picture_adjoint(
    const float* __restrict__ from, const float* __restrict__ filter, float* __restrict__ to, int side, int taps, int left) {
    const int half_side = side / 2, index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= half_side * half_side) return;
    const float* plane = from + (size_t)blockIdx.y * side * side;
    const int row = 2 * (index / half_side) + left, column = 2 * (index % half_side) + left;
    wait_for_previous_kernel();
    float sum = 0.0f;
    for (int i = 0; i < taps; ++i) {
        const int y = row - i;
        if ((unsigned)y >= (unsigned)side) continue;
        float line = 0.0f;
        for (int j = 0; j < taps; ++j) {
            const int x = column - j;
            if ((unsigned)x < (unsigned)side) line = fmaf(filter[j], plane[y * side + x], line);
        }
        sum = fmaf(filter[i], line, sum);
    }
    to[(size_t)blockIdx.y * half_side * half_side + index] = sum;
}
