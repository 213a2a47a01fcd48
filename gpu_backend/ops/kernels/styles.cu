// Styles and demodulation coefficients of all layers, the first layer's input, and cleared flags, in one launch.
//
//     s = w[row] . A + a                              A includes 1 / sqrt(w_dim); toRGB's A and a include its gain
//     toRGB:          style = s
//     convolutions:   style = s / m,   demod[o] = m 2^e / sqrt(sum_i s_i^2 W2[o, i] + 1e-8),   m = max_i |s_i|
//     x0 = constant * style of the first convolution
//
// Work is divided into items, one per block: WARPS * ROWS rows of one layer's A (style items) or W2 (demodulation items). A
// demodulation item reads the whole style of its layer, so it waits until the counter `ready` has counted the layer's style items.
// Blocks take items by ticket, in the order in which they start, all style items of a pass before its demodulation items. So a
// block waits only for blocks that already run and do not wait themselves, however few blocks fit on the GPU. The table's rows do
// not depend on styles: their loads are in flight during the wait.
//
// A pass is BATCH samples. Counters, all 0 before and after a run: [0] the ticket, then `ready` and `left` for every pass and slot.
// The ticket wraps around to 0; the last item to leave a wait clears `ready`.
//
// An item is 16 integers, made by style_items in gpu_backend/cuda/launches/styles.py:
//     0 kind (an ItemKind)            1 16-byte groups per row        2 rows (a multiple of 8)
//     3 first group in the table      4 first row of terms          5 source, in ws or in raw
//     6 columns of the source         7 destination                 8 slot
//     9 style items of the slot      10 demodulation items of the slot
//    11 index of the item among them 12 1: the slot styles x0
// terms[row] = (factor of the product, addend) in style items, (factor of the product, 2^e or 0) in demodulation items.
//
// Macros: HALF, see parts/types.cuh; BATCH, 1, 2, 4 or 8.
enum ItemKind : int { RGB_STYLE, STYLE, DEMODULATION };
enum : int {
    ROWS = HALF ? 4 : 2,
    WARPS = 8,
    THREADS = 32 * WARPS,
};
#include "parts/types.cuh"
#include "parts/rows.cuh"
#include "parts/previous_kernel.cuh"

#define EPSILON 1e-8f
enum : int { PIXELS = 16 };

__device__ __forceinline__ unsigned load_acquire(const unsigned* from) {
    unsigned v;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

__device__ __forceinline__ void add_one_release(unsigned* to) {
    asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(to) : "memory");
}

__device__ __forceinline__ void prefetch(const void* from) {
    asm volatile("prefetch.L2 [%0];" ::"l"(from));
}

// Waits until all style items of the slot are done. One thread calls this; a barrier of the block follows.
__device__ __forceinline__ void wait_for_styles(unsigned* ready, unsigned* left, unsigned style_items, unsigned demod_items) {
    while (load_acquire(ready) < style_items) {
    }
    if (atomicInc(left, demod_items - 1) == demod_items - 1) *ready = 0;
}

// peaks[b] = the largest peak[b] of the block's threads: magnitudes as bits, which compare like numbers.
__device__ __forceinline__ void collect_peaks(unsigned (&peak)[BATCH], unsigned* peaks) {
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
#pragma unroll
        for (int other = 16; other > 0; other >>= 1) {
            const unsigned bits = __shfl_xor_sync(0xffffffffu, peak[b], other);
            peak[b] = bits > peak[b] ? bits : peak[b];
        }
        if ((threadIdx.x & 31) == 0) atomicMax(&peaks[b], peak[b]);
    }
}

// s / m of sample b, four neighbouring columns; zeros where m is 0.
__device__ __forceinline__ void normalized(
    const float* vectors, const unsigned* peaks, int groups, int b, int column, float (&v)[4]) {
    const float peak = __uint_as_float(peaks[b]);
    load_many(vectors + b * groups * GROUP + place_of(column, groups), v);
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = peak == 0.0f ? 0.0f : v[i] / peak;
}

extern "C" __global__ void __launch_bounds__(THREADS, BATCH > 1 ? 2 : HALF ? 4 : 3) styles(
    const float* ws, const uint4* __restrict__ table, const float2* __restrict__ terms, const int4* __restrict__ items,
    const float* __restrict__ constant, float* raw, float* style, float* demod, T* x0, unsigned* flags,
    unsigned* counters, int batch, int item_count, int slot_count, int ws_stride, int style_stride, int demod_stride,
    int table_lines) {
    wait_for_previous_kernel();
    extern __shared__ float4 shared[];
    __shared__ unsigned shared_ticket;
    __shared__ unsigned peaks[BATCH];
    float* vectors = reinterpret_cast<float*>(shared);

    unsigned taken = 0;
    if (threadIdx.x == 0) taken = atomicInc(counters, gridDim.x - 1);
    if (threadIdx.x < BATCH) peaks[threadIdx.x] = 0;
    // While the ticket is in flight: prefetch the whole table into L2, a line or a few per thread, and the item that this block
    // will most likely get, since blocks start nearly in order.
    if (threadIdx.x == 0) prefetch(items + 4 * (blockIdx.x % item_count));
    for (int line = blockIdx.x * THREADS + threadIdx.x; line < table_lines; line += gridDim.x * THREADS)
        prefetch(table + (size_t)line * 8);
    if (threadIdx.x == 0) shared_ticket = taken;
    __syncthreads();
    const int ticket = (int)shared_ticket;
    if (ticket == 0)
#pragma unroll 1
        for (int b = threadIdx.x; b < batch; b += THREADS) flags[b] = 0;

    const int pass = ticket / item_count;
    const int4* item = items + 4 * (ticket - pass * item_count);
    const int4 i0 = item[0], i1 = item[1], i2 = item[2], i3 = item[3];
    const int kind = i0.x, groups = i0.y, rows = i0.z, source = i1.y, destination = i1.w;
    const int first_sample = pass * BATCH;
    const int samples = min(BATCH, batch - first_sample);
    unsigned* ready = counters + 1 + 2 * (pass * slot_count + i2.x);

    const int lane = threadIdx.x & 31;
    const int first_row = (threadIdx.x >> 5) * ROWS;
    const bool has_rows = first_row < rows;
    const uint4* my_rows = table + i0.w + (size_t)first_row * groups;
    uint4 words[ROWS][CHUNKS];
    load_rows(my_rows, groups, 0, has_rows, words);
    const int row = first_row + lane % ROWS, b = lane / ROWS;
    const float2 term = has_rows ? terms[i1.x + row] : make_float2(0.0f, 0.0f);

    float sums[SUMS] = {};
    float total;
    unsigned peak[BATCH] = {};
    if (kind < DEMODULATION) {
        stage_vectors(ws + (size_t)first_sample * ws_stride + source, ws_stride, samples, i1.z, groups, vectors, peak);
        __syncthreads();
        add_row_products<false>(vectors, my_rows, groups, has_rows, words, sums);
        total = total_over_lanes(sums);
        float* to = kind == RGB_STYLE ? style : raw;
        if (has_rows && b < samples)
            to[(size_t)(first_sample + b) * style_stride + destination + row] = fmaf(total, term.x, term.y);
        if (kind == RGB_STYLE) return;
        __syncthreads();
        if (threadIdx.x == 0) add_one_release(ready);
        return;
    }

    if (threadIdx.x == 0) wait_for_styles(ready, ready + 1, (unsigned)i2.y, (unsigned)i2.z);
    __syncthreads();
    stage_vectors(raw + (size_t)first_sample * style_stride + source, style_stride, samples, i1.z, groups, vectors, peak);
    collect_peaks(peak, peaks);
    __syncthreads();
    add_row_products<true>(vectors, my_rows, groups, has_rows, words, sums);
    total = total_over_lanes(sums);
    if (has_rows && b < samples)
        demod[(size_t)(first_sample + b) * demod_stride + destination + row] =
            rsqrtf(fmaf(total, term.x, EPSILON)) * __uint_as_float(peaks[b]) * term.y;

    // The demodulation items of a slot share the work on its whole style: style = s / m, and x0.
    const int quads = i1.z >> 2, step = i2.z * THREADS;
    float v[4];
    for (int i = i2.w * THREADS + threadIdx.x; i < samples * quads; i += step) {
        const int sample = i / quads, column = 4 * (i - sample * quads);
        normalized(vectors, peaks, groups, sample, column, v);
        store_many(style + (size_t)(first_sample + sample) * style_stride + source + column, v);
    }
    if (i3.x == 0) return;
    for (int i = i2.w * THREADS + threadIdx.x; i < samples * PIXELS * quads; i += step) {
        const int pixel = i / quads, column = 4 * (i - pixel * quads), sample = pixel / PIXELS;
        float c[4];
        load_many(constant + (size_t)(pixel % PIXELS) * 4 * quads + column, c);
        normalized(vectors, peaks, groups, sample, column, v);
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] *= c[k];
        store_many(x0 + ((size_t)first_sample * PIXELS + pixel) * 4 * quads + column, v);
    }
}
