// The adjoint of doubling a picture: from the gradient of the picture at `side` to that of the picture at half of it.
//
//     to[y, x] = sum_ij f[i] f[j] from[2 y + left - i, 2 x + left - j]
//
// `filter` as in gradient_picture. Macro TAPS: of the filter. A thread a number. Grid: threads of one plane, planes of all samples.
#include "parts/previous_kernel.cuh"

#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS) gradient_picture_adjoint(
    const float* __restrict__ from, const float* __restrict__ filter, float* __restrict__ to, int side, int left) {
    const int half_side = side / 2, index = blockIdx.x * THREADS + threadIdx.x;
    if (index >= half_side * half_side) return;
    const float* plane = from + (size_t)blockIdx.y * side * side;
    const int row = 2 * (index / half_side) + left, column = 2 * (index % half_side) + left;
    float f[TAPS], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) f[i] = filter[i];
    wait_for_previous_kernel();
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        const int in_row = row - i, safe_row = min(max(in_row, 0), side - 1);
        float line = 0.0f;
#pragma unroll
        for (int j = 0; j < TAPS; ++j) {
            // No branch around the load, so that many are under way together.
            const int in_column = column - j, safe_column = min(max(in_column, 0), side - 1);
            line = fmaf(in_column == safe_column ? f[j] : 0.0f, plane[safe_row * side + safe_column], line);
        }
        sum = fmaf(in_row == safe_row ? f[i] : 0.0f, line, sum);
    }
    to[(size_t)blockIdx.y * half_side * half_side + index] = sum;
}
