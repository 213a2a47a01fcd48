// The loss of a picture's pixels and its gradient: square_weight * sum of squares - window_weight * sum of the structural similarities
// (Wang et al. 2004) of all windows of WINDOW x WINDOW pixels. Of values v of the picture and w of the wanted one in -1..1, with f = (v + 1) / 2,
// g of w, and m = E f, q = E f^2, c = E f g over a window:
//
//     s = (2 m mg + C1) / (m^2 + mg^2 + C1) * (2 (c - m mg) + C2) / (q - m^2 + vg + C2)
//     gradient = 2 square_weight (v - w) - window_weight / (2 WINDOW^2) sum over the pixel's windows of (ds/dm + 2 f ds/dq + g ds/dc)
//
// mg and vg, the wanted plane's means and variances, are given. A picture smaller than a window has one window, the whole picture. Planes are
// [plane][side][side], windows [plane][windows][windows]; `parts` has the loss of each block.
//
// A block does a tile of ACROSS x DOWN pixels. `lines` has sums along rows of v, v^2 and v w; then, in their place, ds/dm, ds/dq and ds/dc of
// windows; then sums of these along rows. A sum down a column is a suffix sum of seven rows plus a prefix sum of the next six. Grid: tiles across
// and down, planes.
#include "parts/gradient_table.cuh"
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"

#define ACROSS 64
#define DOWN 36
#define WINDOW 7
#define MARGIN (WINDOW - 1)
#define LEFT 8                        // columns of windows to the left of the tile, a whole number of quads
#define COLUMNS (ACROSS + LEFT)       // of windows
#define WINDOW_ROWS (DOWN + MARGIN)   // of windows
#define ROWS (WINDOW_ROWS + MARGIN)   // of pixels
#define QUADS (COLUMNS / 4)
#define SEGMENTS (WINDOW_ROWS / WINDOW)
#define THREADS (COLUMNS * SEGMENTS)
#define OWN_ROWS (DOWN / SEGMENTS)    // of pixels that a thread completes
#define TURNS ((ROWS * QUADS + THREADS - 1) / THREADS)
#define C1 1e-4f
#define C2 9e-4f

static_assert(COLUMNS % 4 == 0 && WINDOW_ROWS % WINDOW == 0 && DOWN % SEGMENTS == 0 && OWN_ROWS <= WINDOW, "tiles are whole");

// to[i] = from[i] + .. + from[i + 6] for four i.
__device__ __forceinline__ void sum_along(const float (&from)[12], int first, float (&to)[4]) {
    const float* v = from + first;
    const float both = v[3] + v[4] + v[5] + v[6], left = v[1] + v[2], right = v[7] + v[8];
    to[0] = both + (v[0] + left), to[1] = both + (left + v[7]), to[2] = both + (v[2] + right), to[3] = both + (right + v[9]);
}

// to[i] = column[i] + .. + column[i + 6], of rows COLUMNS apart.
template <int COUNT>
__device__ __forceinline__ void sum_down(const float* column, float (&to)[COUNT]) {
    float sum = 0.0f;
#pragma unroll
    for (int i = MARGIN; i >= 0; --i) {
        sum += column[i * COLUMNS];
        if (i < COUNT) to[i] = sum;
    }
    sum = 0.0f;
#pragma unroll
    for (int i = 1; i < COUNT; ++i) to[i] += sum += column[(MARGIN + i) * COLUMNS];
}

__device__ __forceinline__ float reciprocal(float v) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

struct Similarity {
    float value, by_m, by_q, by_c;
};

// From the means of v, v^2 and v w.
__device__ __forceinline__ Similarity similarity(float mean, float square, float product, float mg, float vg) {
    const float m = fmaf(mean, 0.5f, 0.5f), wanted_mean = fmaf(mg, 2.0f, -1.0f);
    const float variance = 0.25f * fmaf(-mean, mean, square), covariance = 0.25f * fmaf(-mean, wanted_mean, product);
    const float mean_scale = reciprocal(m * m + mg * mg + C1), scale = reciprocal(variance + vg + C2);
    const float luminance = (2.0f * m * mg + C1) * mean_scale, structure = (2.0f * covariance + C2) * scale;
    const float by_c = luminance * 2.0f * scale, by_q = -luminance * structure * scale;
    return {luminance * structure, structure * 2.0f * (mg - luminance * m) * mean_scale - by_c * mg - 2.0f * by_q * m, by_q, by_c};
}

// Columns x .. x + 9 of the row that begins at `row`. Outside of it they are any values of the row, which no window inside it has.
__device__ __forceinline__ void load_row(const float* from, unsigned row, int x, int side, float (&v)[12]) {
    if (side % 4 == 0) {
#pragma unroll
        for (int i = 0; i < 12; i += 4) {
            const float4 q = *reinterpret_cast<const float4*>(from + (row + min(max(x + i, 0), side - 4)));
            v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < 4 + MARGIN; ++i) v[i] = from[row + min(max(x + i, 0), side - 1)];
        v[10] = v[11] = 0.0f;
    }
}

// A picture of one window, by a warp.
__device__ __forceinline__ float small_plane(
    const float* found, const float* wanted, float mg, float vg, float* gradient, int pixels, float square_weight, float window_weight) {
    float sums[4] = {};
    for (int i = threadIdx.x; i < pixels; i += 32) {
        const float v = found[i], w = wanted[i];
        sums[0] += v, sums[1] = fmaf(v, v, sums[1]), sums[2] = fmaf(v, w, sums[2]), sums[3] = fmaf(v - w, v - w, sums[3]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = warp_total(sums[i]);
    const float share = 1.0f / (float)pixels;
    const Similarity s = similarity(sums[0] * share, sums[1] * share, sums[2] * share, mg, vg);
    for (int i = threadIdx.x; i < pixels; i += 32) {
        const float v = found[i], w = wanted[i], of_window = s.by_m + (v + 1.0f) * s.by_q + fmaf(w, 0.5f, 0.5f) * s.by_c;
        gradient[i] = 2.0f * square_weight * (v - w) - 0.5f * window_weight * share * of_window;
    }
    return square_weight * sums[3] - window_weight * s.value;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) gradient_pixels(
    const float* __restrict__ found, const float* __restrict__ wanted, const float* __restrict__ means, const float* __restrict__ variances,
    float* __restrict__ gradient, float* __restrict__ parts, int side, float square_weight, float window_weight) {
    __shared__ float lines[3][ROWS][COLUMNS];
    __shared__ float totals[(THREADS + 31) / 32];
    const int plane = blockIdx.z, left = blockIdx.x * ACROSS, top = blockIdx.y * DOWN, windows = max(side - MARGIN, 1);
    // Unsigned, so that an address is one instruction.
    const unsigned own_plane = plane * side * side, own_windows = plane * windows * windows;
    wait_for_previous_kernel();
    if (side < WINDOW) {
        if (threadIdx.x >= 32) return;
        const float part = small_plane(
            found + own_plane, wanted + own_plane, means[plane], variances[plane], gradient + own_plane, side * side, square_weight,
            window_weight);
        if (threadIdx.x == 0) parts[plane] = part;
        return;
    }
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int index = threadIdx.x + turn * THREADS, row = index / QUADS, quad = index % QUADS;
        if (ROWS * QUADS % THREADS && row >= ROWS) break;
        const int y = top - MARGIN + row, x = left - LEFT + 4 * quad;
        const unsigned at = own_plane + min(max(y, 0), side - 1) * side;
        float v[12], w[12], sums[4];
        load_row(found, at, x, side, v), load_row(wanted, at, x, side, w);
        sum_along(v, 0, sums);
        store_many(&lines[0][row][4 * quad], sums);
#pragma unroll
        for (int i = 0; i < 12; ++i) w[i] *= v[i], v[i] *= v[i];
        sum_along(v, 0, sums);
        store_many(&lines[1][row][4 * quad], sums);
        sum_along(w, 0, sums);
        store_many(&lines[2][row][4 * quad], sums);
    }
    __syncthreads();
    float loss = 0.0f;
    {
        // Window rows first .. first + WINDOW of a column.
        const int column = threadIdx.x % COLUMNS, first = threadIdx.x / COLUMNS * WINDOW, x = left - LEFT + column;
        const int y = top - MARGIN + first;
        const unsigned at = own_windows + y * windows + x;
        const bool is_column = (unsigned)x < (unsigned)windows, is_own_column = column >= LEFT;
        float sums[3][WINDOW], mg[WINDOW] = {}, vg[WINDOW] = {};
        bool is_there[WINDOW];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            is_there[i] = is_column && (unsigned)(y + i) < (unsigned)windows;
            if (is_there[i]) mg[i] = means[at + i * windows], vg[i] = variances[at + i * windows];
        }
#pragma unroll
        for (int k = 0; k < 3; ++k) sum_down(&lines[k][first][column], sums[k]);
        __syncthreads();
        const float share = 1.0f / (WINDOW * WINDOW);
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) {
            const Similarity s = similarity(sums[0][i] * share, sums[1][i] * share, sums[2][i] * share, mg[i], vg[i]);
            lines[0][first + i][column] = is_there[i] ? s.by_m : 0.0f;
            lines[1][first + i][column] = is_there[i] ? s.by_q : 0.0f;
            lines[2][first + i][column] = is_there[i] ? s.by_c : 0.0f;
            // Windows of a margin count where their first pixel is another tile's own.
            if (is_there[i] && first + i >= MARGIN && is_own_column) loss = fmaf(-window_weight, s.value, loss);
        }
    }
    __syncthreads();
    {
        constexpr int OUT_QUADS = ACROSS / 4, OUT_TURNS = (WINDOW_ROWS * OUT_QUADS + THREADS - 1) / THREADS;
        float sums[OUT_TURNS][3][4];
#pragma unroll
        for (int turn = 0; turn < OUT_TURNS; ++turn) {
            const int index = min((int)threadIdx.x + turn * THREADS, WINDOW_ROWS * OUT_QUADS - 1), row = index / OUT_QUADS;
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                float v[12];
#pragma unroll
                for (int i = 0; i < 12; i += 4) {
                    const float4 q = *reinterpret_cast<const float4*>(&lines[k][row][4 * (index % OUT_QUADS) + i]);
                    v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
                }
                sum_along(v, LEFT - MARGIN, sums[turn][k]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int turn = 0; turn < OUT_TURNS; ++turn) {
            const int index = threadIdx.x + turn * THREADS, row = index / OUT_QUADS;
            if (row >= WINDOW_ROWS) break;
#pragma unroll
            for (int k = 0; k < 3; ++k) store_many(&lines[k][row][4 * (index % OUT_QUADS)], sums[turn][k]);
        }
    }
    __syncthreads();
    if (threadIdx.x < ACROSS * SEGMENTS) {
        const int column = threadIdx.x % ACROSS, first = threadIdx.x / ACROSS * OWN_ROWS, x = left + column;
        const int rows = x < side ? side - top - first : 0;  // that are there
        const unsigned at = own_plane + (top + first) * side + x;
        float v[OWN_ROWS] = {}, w[OWN_ROWS] = {}, sums[3][OWN_ROWS];
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i)
            if (i < rows) v[i] = found[at + i * side], w[i] = wanted[at + i * side];
#pragma unroll
        for (int k = 0; k < 3; ++k) sum_down(&lines[k][first][column], sums[k]);
        const float share = 0.5f * window_weight / (WINDOW * WINDOW);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; ++i) {
            const float difference = v[i] - w[i];
            const float of_windows = sums[0][i] + (v[i] + 1.0f) * sums[1][i] + fmaf(w[i], 0.5f, 0.5f) * sums[2][i];
            if (i < rows) gradient[at + i * side] = 2.0f * square_weight * difference - share * of_windows;
            loss = fmaf(square_weight * difference, difference, loss);
        }
    }
    loss = warp_total(loss);
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = loss;
    __syncthreads();
    if (threadIdx.x) return;
#pragma unroll
    for (int i = 1; i < (THREADS + 31) / 32; ++i) loss += totals[i];
    parts[((size_t)plane * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = loss;
}
