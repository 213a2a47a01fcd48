// Structural similarity (Wang et al. 2004) of each window of `across` x `across` pixels of two planes, and how it depends on the
// window's moments. With f = (found + 1) / 2 and g of the wanted plane, m = E f, q = E f^2, c = E f g over the window:
//
//     s = (2 m mg + C1) / (m^2 + mg^2 + C1) * (2 (c - m mg) + C2) / (q - m^2 + vg + C2)
//
// moments[0 .. 2] = ds/dm, ds/dq, ds/dc at each window; `parts` has the sum of s of each block. mg and vg, the wanted plane's means
// and variances, are given. Planes are [plane][side][side], windows [plane][windows][windows]. Sums along rows, then columns.
// Grid: tiles of 32 x 16 windows across and down, planes; block 32 x 8.
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define ACROSS 32
#define DOWN 16
#define LINES 8
#define MOST 7
#define C1 1e-4f
#define C2 9e-4f

extern "C" __global__ void __launch_bounds__(ACROSS* LINES) gradient_windows(
    const float* __restrict__ found, const float* __restrict__ wanted, const float* __restrict__ means,
    const float* __restrict__ variances, float* __restrict__ moments, float* __restrict__ parts, int side, int across) {
    __shared__ float f[DOWN + MOST - 1][ACROSS + MOST - 1], g[DOWN + MOST - 1][ACROSS + MOST - 1];
    __shared__ float lines[3][DOWN + MOST - 1][ACROSS];
    __shared__ float totals[LINES];
    const int windows = side - across + 1, margin = across - 1;
    const int left = blockIdx.x * ACROSS, top = blockIdx.y * DOWN;
    const size_t plane = (size_t)blockIdx.z * side * side, own = (size_t)blockIdx.z * windows * windows;
    wait_for_previous_kernel();
    for (int i = threadIdx.y * ACROSS + threadIdx.x; i < (DOWN + margin) * (ACROSS + margin); i += ACROSS * LINES) {
        const int y = i / (ACROSS + margin), x = i % (ACROSS + margin);
        const bool is_inside = top + y < side && left + x < side;
        const size_t at = plane + (size_t)(top + y) * side + left + x;
        f[y][x] = is_inside ? fmaf(found[at], 0.5f, 0.5f) : 0.0f;
        g[y][x] = is_inside ? fmaf(wanted[at], 0.5f, 0.5f) : 0.0f;
    }
    __syncthreads();
    for (int y = threadIdx.y; y < DOWN + margin; y += LINES) {
        float a = 0.0f, b = 0.0f, c = 0.0f;
        for (int i = 0; i < across; ++i) {
            const float v = f[y][threadIdx.x + i];
            a += v, b = fmaf(v, v, b), c = fmaf(v, g[y][threadIdx.x + i], c);
        }
        lines[0][y][threadIdx.x] = a, lines[1][y][threadIdx.x] = b, lines[2][y][threadIdx.x] = c;
    }
    __syncthreads();
    const float share = 1.0f / (float)(across * across);
    const size_t all = (size_t)gridDim.z * windows * windows;
    float sum = 0.0f;
    for (int row = threadIdx.y; row < DOWN; row += LINES) {
        const int y = top + row, x = left + threadIdx.x;
        if (y >= windows || x >= windows) continue;
        float m = 0.0f, q = 0.0f, c = 0.0f;
        for (int i = 0; i < across; ++i)
            m += lines[0][row + i][threadIdx.x], q += lines[1][row + i][threadIdx.x], c += lines[2][row + i][threadIdx.x];
        m *= share, q *= share, c *= share;
        const size_t at = own + (size_t)y * windows + x;
        const float mg = means[at], vg = variances[at];
        const float mean_scale = 1.0f / (m * m + mg * mg + C1), scale = 1.0f / (q - m * m + vg + C2);
        const float luminance = (2.0f * m * mg + C1) * mean_scale, structure = (2.0f * (c - m * mg) + C2) * scale;
        const float by_c = luminance * 2.0f * scale, by_q = -luminance * structure * scale;
        moments[at] = structure * 2.0f * (mg - luminance * m) * mean_scale - by_c * mg - 2.0f * by_q * m;
        moments[all + at] = by_q, moments[2 * all + at] = by_c;
        sum = fmaf(luminance, structure, sum);
    }
    sum = warp_total(sum);
    if (threadIdx.x == 0) totals[threadIdx.y] = sum;
    __syncthreads();
    if (threadIdx.x > 0 || threadIdx.y > 0) return;
    sum = 0.0f;
    for (int i = 0; i < LINES; ++i) sum += totals[i];
    parts[((size_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = sum;
}
