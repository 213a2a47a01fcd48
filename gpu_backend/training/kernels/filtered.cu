// The filter [1, 3, 3, 1] / 8 along both axes, zeros outside, times a gain. A thread has V channels of a column, and walks
// down; a row is filtered along x as it is loaded, and kept for the rows below. ROWS: rows of the result to a thread
// (of the input, for KIND 2). KIND: 0, the same size, from PAD pixels outside; 1, half the side; 2, twice the side.
#include "parts/elements.cuh"

#define OUTER 0.125f
#define INNER 0.375f

__device__ __forceinline__ Elements zeros() {
    Elements e = {};
    return e;
}

__device__ __forceinline__ Elements sum_of(const Elements& a, float p, const Elements& b, float q) {
    Elements e;
#pragma unroll
    for (int i = 0; i < V; ++i) e.of[i] = a.of[i] * p + b.of[i] * q;
    return e;
}

__device__ __forceinline__ Elements taps_of(
    const Elements& a, const Elements& b, const Elements& c, const Elements& d, float gain) {
    Elements e;
#pragma unroll
    for (int i = 0; i < V; ++i) e.of[i] = ((a.of[i] + d.of[i]) * OUTER + (b.of[i] + c.of[i]) * INNER) * gain;
    return e;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) filtered(
    const T* __restrict__ x, T* __restrict__ y, int height, int width, int to_height, int to_width, int channels,
    float gain) {
    const int groups = channels / V, lanes = THREADS / groups;
    const int group = threadIdx.x % groups, lane = threadIdx.x / groups;
    if (lane >= lanes) return;
    const size_t image = blockIdx.z;
    const int column = blockIdx.x * lanes + lane;
    const T* from = x + image * height * width * channels + group * V;
    T* to = y + image * to_height * to_width * channels + group * V;
    const auto at = [&](int row, int place) {
        const bool is_inside = row >= 0 && row < height && place >= 0 && place < width;
        return is_inside ? load(from + ((size_t)row * width + place) * channels) : zeros();
    };
#if KIND == 2
    if (column >= width) return;
    const int begin = blockIdx.y * ROWS, end = begin + ROWS < height ? begin + ROWS : height;
    // Even and odd columns of the result, of the rows before, at and after the one at hand.
    Elements even[3], odd[3];
    const auto along = [&](int row, Elements& left, Elements& right) {
        const Elements before = at(row, column - 1), middle = at(row, column), after = at(row, column + 1);
        left = sum_of(middle, INNER, before, OUTER);
        right = sum_of(middle, INNER, after, OUTER);
    };
    along(begin - 1, even[0], odd[0]);
    along(begin, even[1], odd[1]);
    for (int row = begin; row < end; ++row) {
        along(row + 1, even[2], odd[2]);
        T* place = to + ((size_t)(2 * row) * to_width + 2 * column) * channels;
        store(place, sum_of(even[1], INNER * gain, even[0], OUTER * gain));
        store(place + channels, sum_of(odd[1], INNER * gain, odd[0], OUTER * gain));
        place += (size_t)to_width * channels;
        store(place, sum_of(even[1], INNER * gain, even[2], OUTER * gain));
        store(place + channels, sum_of(odd[1], INNER * gain, odd[2], OUTER * gain));
        even[0] = even[1], even[1] = even[2];
        odd[0] = odd[1], odd[1] = odd[2];
    }
#else
    if (column >= to_width) return;
    const int step = KIND == 1 ? 2 : 1, first = column * step - PAD;
    const int begin = blockIdx.y * ROWS, end = begin + ROWS < to_height ? begin + ROWS : to_height;
    const auto along = [&](int row) {
        return taps_of(at(row, first), at(row, first + 1), at(row, first + 2), at(row, first + 3), 1.0f);
    };
    Elements kept[4];
#pragma unroll
    for (int i = 0; i < 4 - step; ++i) kept[i] = along(begin * step - PAD + i);
    for (int row = begin; row < end; ++row) {
#pragma unroll
        for (int i = 4 - step; i < 4; ++i) kept[i] = along(row * step - PAD + i);
        store(to + ((size_t)row * to_width + column) * channels, taps_of(kept[0], kept[1], kept[2], kept[3], gain));
#pragma unroll
        for (int i = 0; i < 4 - step; ++i) kept[i] = kept[i + step];
    }
#endif
}
