// The end of a way back: what gradient_activation and convolutions left for the layers of a row of w becomes the gradient of that row,
//
//     direct_i = sum of style_sums,   e_o = (sum of demod_sums) demod_o^3
//     ds_i = direct_i - style_i sum_o e_o Q[o, i],   dw = unit * sum over the row's layers of A^T ds
//
// and, with `start`, a step of Adam as gpu_backend/gradients/solvers.py does it: moments of the gradient in deviations of w, the second one
// number a row. Without `start`, dw goes to ws_gradient.
//
//     mean += 0.1 (g - mean),   square += 0.05 (average of g^2 - square)
//     shift -= rate * mean / (1 - 0.9^n) / (sqrt(square / (1 - 0.95^n)) + 1e-12),   w = start + shift * deviation
//
// A cluster does a row, since no other row needs its numbers: its blocks take turns at groups of 64 channels or dimensions, and exchange sums
// through shared memory. Q and A are fp16, Q divided by SQUARES_UNIT. `table` has `depth` layers a row of w, in rows of `w_pitch` dimensions of A.
// Grid: the first of the `rows` of w from first_row on, samples, blocks of a cluster. Where clusters of all rows would not fit at once, every
// second cluster does one of the remaining rows too: in pictures every second row has a layer less. Dynamic shared memory:
//
//     widest   widest widest w_pitch    w_pitch  w_pitch  w_pitch
//     | direct | e    | ds   | dw, mean | shift  | start  | deviation |
//
// `widest` is the number of channels of the widest layer, and at least CLUSTER * 64: sums of shares lie one after another first.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_cluster.cuh"
#include "parts/gradient_constants.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define THREADS 512
#define WARPS (THREADS / 32)
#define GROUP 64  // channels or dimensions
#define LANES (GROUP / 8)  // threads of a group, eight channels each
#define ROWS (THREADS / LANES)  // rows of a matrix side by side
#define TURNS 8
#define SUM_LANES (GROUP / 4)
#define SUM_ROWS (THREADS / 2 / SUM_LANES)  // rows of each of both sums side by side
#define SUM_TURNS 8

// Rows from `first` on of eight columns of a matrix. Rows and columns outside it repeat the last ones, so that no branch is around a load.
__device__ __forceinline__ void load_columns(const half_bits* matrix, int first, int rows, int columns, int group, uint4 (&v)[TURNS]) {
    const int column = min(group * GROUP + (int)(threadIdx.x % LANES) * 8, columns - 8);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
        const int row = min(first + turn * ROWS + (int)threadIdx.x / LANES, rows - 1);
        v[turn] = load_constant(matrix + (size_t)row * columns + column);
    }
}

// sum_r factors[r] matrix[r, c] of a group's column c = threadIdx.x, in the first GROUP threads. v holds the first rows.
__device__ __forceinline__ float column_sum(
    const half_bits* matrix, int rows, int columns, int group, uint4 (&v)[TURNS], const float* factors, float (*parts)[GROUP]) {
    float sum[8] = {};
    for (int first = 0;;) {
#pragma unroll
        for (int turn = 0; turn < TURNS; ++turn) {
            const int row = first + turn * ROWS + threadIdx.x / LANES;
            const float factor = row < rows ? factors[row] : 0.0f;
            float q[8];
            from_half8(v[turn], q);
#pragma unroll
            for (int i = 0; i < 8; ++i) sum[i] = fmaf(factor, q[i], sum[i]);
        }
        first += TURNS * ROWS;
        if (first >= rows) break;
        load_columns(matrix, first, rows, columns, group, v);
    }
    __syncthreads();  // the parts are free
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int other = LANES; other < 32; other *= 2) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], other);
    }
    const int lane = threadIdx.x & 31;
    if (lane < LANES) store_many(&parts[threadIdx.x >> 5][lane * 8], sum);
    __syncthreads();
    float total = 0.0f;
    if (threadIdx.x < GROUP) {
#pragma unroll
        for (int i = 0; i < WARPS; ++i) total += parts[i][threadIdx.x];
    }
    return total;
}

// A thread's part of the sum over rows of four columns: each `step`th row from `first` on.
__device__ __forceinline__ void add_rows(const float* from, int rows, int width, int first, int step, float (&sum)[4]) {
    for (; first < rows; first += SUM_TURNS * step) {
        float v[SUM_TURNS][4];
#pragma unroll
        for (int turn = 0; turn < SUM_TURNS; ++turn) load_many(from + (size_t)min(first + turn * step, rows - 1) * width, v[turn]);
#pragma unroll
        for (int turn = 0; turn < SUM_TURNS; ++turn)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[i] += first + turn * step < rows ? v[turn][i] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) WITH_CLUSTERS gradient_rows(
    const float* __restrict__ sums, const float* __restrict__ styles, const float* __restrict__ demods,
    const half_bits* __restrict__ squares, const half_bits* __restrict__ affine, const int* __restrict__ table,
    float* __restrict__ ws_gradient, const float* __restrict__ start, const float* __restrict__ deviation, float* __restrict__ mean,
    float* __restrict__ square, float* __restrict__ count, float* __restrict__ shift, float* __restrict__ ws, int depth, int first_row,
    int rows, int w_rows, int w_dim, int w_pitch, int widest, int style_count, int demod_count, int sum_count, float unit, float rate) {
    extern __shared__ float shared[];
    __shared__ alignas(16) float parts[2 * SUM_ROWS][GROUP];  // of column_sum the first WARPS
    __shared__ float row_squares[CLUSTER];
    float *direct = shared, *e = direct + widest, *ds = e + widest, *dw = ds + widest;
    const int rank = blockIdx.z, sample = blockIdx.y;
    int number = blockIdx.x;  // of the row
    const int* layer = table + (size_t)(first_row + number) * depth * LAYER_INTS;
    int inputs = layer[INPUTS];
    uint4 q[TURNS], a[TURNS];
    auto load_layer = [&]() {
        if (layer[OUTPUTS] > 0) load_columns(squares + layer[SQUARES], 0, layer[OUTPUTS], inputs, rank, q);
        load_columns(affine + (size_t)layer[AFFINE] * w_pitch, 0, inputs, w_pitch, rank, a);
    };
    if (inputs > 0) load_layer();
    start_cluster();
    wait_for_previous_kernel();
    sums += (size_t)sample * sum_count, styles += (size_t)sample * style_count, demods += (size_t)sample * demod_count;
    // This thread's dimensions are those of its place in the block's groups.
    auto dimension_of = [&](int place) { return (place / GROUP * CLUSTER + rank) * GROUP + place % GROUP; };
    for (;;) {
#pragma unroll 1
        for (int i = threadIdx.x; i < w_pitch; i += THREADS) dw[i] = 0.0f;
        __syncthreads();
        for (int turn = 0; inputs > 0;) {
            const int outputs = layer[OUTPUTS];
            // Half of the threads add up each kind of sums.
            const bool is_demod = threadIdx.x >= THREADS / 2;
            const int thread = threadIdx.x % (THREADS / 2), width = is_demod ? outputs : inputs;
            const int blocks = layer[is_demod ? DEMOD_BLOCKS : STYLE_BLOCKS];
            const float* first = sums + layer[is_demod ? DEMOD_SUMS : STYLE_SUMS];
            // Blocks share the rows of sums where there are fewer groups of channels than blocks.
            const int groups = (max(inputs, outputs) + GROUP - 1) / GROUP, shares = max(1, CLUSTER / groups);
            for (int part = rank; part < groups * shares; part += CLUSTER) {
                float sum[4] = {};
                const int group = part % groups, share = part / groups;
                const int quad = group * GROUP + thread % SUM_LANES * 4, channel = group * GROUP + thread;
                const bool is_whole = thread < GROUP && channel < width;  // this thread completes a channel's sum
                const float d = is_demod && is_whole ? demods[layer[DEMOD] + channel] : 1.0f;
                if (quad < width) add_rows(first + quad, blocks, width, share * SUM_ROWS + thread / SUM_LANES, shares * SUM_ROWS, sum);
                store_many(&parts[threadIdx.x / SUM_LANES][thread % SUM_LANES * 4], sum);
                __syncthreads();
                if (is_whole) {
                    float total = 0.0f;
#pragma unroll
                    for (int i = 0; i < SUM_ROWS; ++i) total += parts[(is_demod ? SUM_ROWS : 0) + i][thread];
                    if (is_demod) total *= d * d * d * __int_as_float(layer[SQUARES_UNIT]);
                    store_in_cluster((is_demod ? e : direct) + share * width + channel, total);
                }
                __syncthreads();
            }
            sync_cluster();
            if (shares > 1) {
                float* all = is_demod ? e : direct;
                for (int channel = thread; channel < width; channel += THREADS / 2) {
                    float total = 0.0f;
                    for (int share = 0; share < shares; ++share) total += all[share * width + channel];
                    all[channel] = total;
                }
                __syncthreads();
            }
            for (int group = rank; group * GROUP < inputs; group += CLUSTER) {
                const int channel = group * GROUP + threadIdx.x;
                const bool is_mine = threadIdx.x < GROUP && channel < inputs;
                const float style = is_mine ? styles[layer[STYLE] + channel] : 0.0f;
                float through = 0.0f;
                if (outputs > 0) {
                    const half_bits* matrix = squares + layer[SQUARES];
                    if (group != rank) load_columns(matrix, 0, outputs, inputs, group, q);
                    through = column_sum(matrix, outputs, inputs, group, q, e, parts);
                }
                if (is_mine) store_in_cluster(ds + channel, fmaf(-style, through, direct[channel]));
            }
            sync_cluster();
            for (int group = rank; group * GROUP < w_dim; group += CLUSTER) {
                const half_bits* matrix = affine + (size_t)layer[AFFINE] * w_pitch;
                if (group != rank) load_columns(matrix, 0, inputs, w_pitch, group, a);
                const float total = column_sum(matrix, inputs, w_pitch, group, a, ds, parts);
                const int dimension = group * GROUP + threadIdx.x;
                if (threadIdx.x < GROUP && dimension < w_dim) dw[dimension] += total;
            }
            __syncthreads();
            if (++turn == depth) break;
            layer += LAYER_INTS, inputs = layer[INPUTS];
            if (inputs > 0) load_layer();
        }
        const size_t place = ((size_t)sample * w_rows + first_row + number) * w_dim, own = (size_t)number * w_dim;
        if (start) {
            float *means = dw, *shifts = dw + w_pitch, *starts = shifts + w_pitch, *deviations = starts + w_pitch;
            const float steps = count[number] + 1.0f, before = square[number];
            float sum = 0.0f;
            for (int i = threadIdx.x, at; (at = dimension_of(i)) < w_dim; i += THREADS) {
                const float scale = deviation[at], m = mean[own + at], moved = shift[own + at], begin = start[place + at];
                const float g = unit * dw[at] * scale, next = fmaf(0.1f, g - m, m);
                sum = fmaf(g, g, sum);
                means[at] = next, shifts[at] = moved, starts[at] = begin, deviations[at] = scale;
            }
            sum = warp_total(sum);
            if ((threadIdx.x & 31) == 0) parts[0][threadIdx.x >> 5] = sum;
            __syncthreads();
            if (threadIdx.x == 0) {
                sum = 0.0f;
                for (int i = 0; i < WARPS; ++i) sum += parts[0][i];
                store_in_cluster(row_squares + rank, sum);
            }
            sync_cluster();
            sum = 0.0f;
            for (int i = 0; i < CLUSTER; ++i) sum += row_squares[i];
            const float moment = fmaf(0.05f, sum / (float)w_dim - before, before);
            if (rank == 0 && threadIdx.x == 0) count[number] = steps, square[number] = moment;
            const float length = rate / (1.0f - powf(0.9f, steps)) / (sqrtf(moment / (1.0f - powf(0.95f, steps))) + 1e-12f);
            for (int i = threadIdx.x, at; (at = dimension_of(i)) < w_dim; i += THREADS) {
                const float moved = shifts[at] - length * means[at];
                mean[own + at] = means[at], shift[own + at] = moved;
                ws[place + at] = fmaf(moved, deviations[at], starts[at]);
            }
        } else {
            for (int i = threadIdx.x, at; (at = dimension_of(i)) < w_dim; i += THREADS) ws_gradient[place + at] = unit * dw[at];
        }
        const int following = (int)gridDim.x + number / 2;
        if (number % 2 || number >= (int)gridDim.x || following >= rows) break;
        number = following, layer = table + (size_t)(first_row + number) * depth * LAYER_INTS, inputs = layer[INPUTS];
        if (inputs > 0) load_layer();
        sync_cluster();
    }
}
