// The gradient of a picture's loss, square_weight * sum of squares - window_weight * sum of the windows' similarities, from
// what gradient_windows left: a pixel adds up the windows that contain it.
//
//     gradient = 2 square_weight (found - wanted) - window_weight / (2 across^2) sum of (ds/dm + 2 f ds/dq + g ds/dc)
//
// `parts` has the sum of squares of each block. Grid: tiles of 32 x 16 pixels across and down, planes; block 32 x 8.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define ACROSS 32
#define DOWN 16
#define LINES 8
#define MOST 7

extern "C" __global__ void __launch_bounds__(ACROSS* LINES) gradient_pixels(
    const float* __restrict__ found, const float* __restrict__ wanted, const float* __restrict__ moments,
    float* __restrict__ gradient, float* __restrict__ parts, int side, int across, float square_weight, float window_weight) {
    __shared__ float tiles[3][DOWN + MOST - 1][ACROSS + MOST - 1];
    __shared__ float lines[3][DOWN + MOST - 1][ACROSS];
    __shared__ float totals[LINES];
    const int windows = side - across + 1, margin = across - 1;
    const int left = blockIdx.x * ACROSS, top = blockIdx.y * DOWN;
    const size_t plane = (size_t)blockIdx.z * side * side, own = (size_t)blockIdx.z * windows * windows;
    const size_t all = (size_t)gridDim.z * windows * windows;
    wait_for_previous_kernel();
    for (int i = threadIdx.y * ACROSS + threadIdx.x; i < (DOWN + margin) * (ACROSS + margin); i += ACROSS * LINES) {
        const int row = i / (ACROSS + margin), column = i % (ACROSS + margin);
        const int y = top + row - margin, x = left + column - margin;
        const bool is_inside = (unsigned)y < (unsigned)windows && (unsigned)x < (unsigned)windows;
#pragma unroll
        for (int k = 0; k < 3; ++k)
            tiles[k][row][column] = is_inside ? moments[k * all + own + (size_t)y * windows + x] : 0.0f;
    }
    __syncthreads();
    for (int y = threadIdx.y; y < DOWN + margin; y += LINES)
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            float sum = 0.0f;
            for (int i = 0; i < across; ++i) sum += tiles[k][y][threadIdx.x + i];
            lines[k][y][threadIdx.x] = sum;
        }
    __syncthreads();
    const float share = 0.5f * window_weight / (float)(across * across);
    float squares = 0.0f;
    for (int row = threadIdx.y; row < DOWN; row += LINES) {
        const int y = top + row, x = left + threadIdx.x;
        if (y >= side || x >= side) continue;
        float a = 0.0f, b = 0.0f, c = 0.0f;
        for (int i = 0; i < across; ++i)
            a += lines[0][row + i][threadIdx.x], b += lines[1][row + i][threadIdx.x], c += lines[2][row + i][threadIdx.x];
        const size_t at = plane + (size_t)y * side + x;
        const float v = found[at], w = wanted[at], difference = v - w;
        const float of_windows = a + (v + 1.0f) * b + fmaf(w, 0.5f, 0.5f) * c;
        gradient[at] = 2.0f * square_weight * difference - share * of_windows;
        squares = fmaf(difference, difference, squares);
    }
    squares = warp_total(squares);
    if (threadIdx.x == 0) totals[threadIdx.y] = squares;
    __syncthreads();
    if (threadIdx.x > 0 || threadIdx.y > 0) return;
    squares = 0.0f;
    for (int i = 0; i < LINES; ++i) squares += totals[i];
    parts[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = squares;
}
