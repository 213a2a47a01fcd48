// U: a picture doubled by zero insertion and an FIR filter of TAPS taps, as in gpu_backend/ops/upfirdn.py:
//     y[u] = sum_a f[u + n - 1 - left - 2 a] * x[a],  n = TAPS, left = (n + 1) / 2
// on both axes. The gain of an axis is in `taps`.
#pragma once
#include "parts/types.cuh"

// The products of two neighbours of a picture along an axis and their taps: in every kernel the same roundings, so that pictures have the same bytes.
__device__ __forceinline__ float doubled_from(float first, float first_tap, float second, float second_tap) {
    return __fmaf_rn(first_tap, first, __fmul_rn(second_tap, second));
}

// Adds N neighbouring channels of U(low) at (row, column). `low`: (side / 2, side / 2, stride), at the first channel.
template <int N, typename S>
__device__ __forceinline__ void add_doubled(
    float (&sum)[N], const S* low, const float* taps, int side, int stride, int row, int column) {
    const int half_side = side >> 1;
    const int last_row = row + TAPS - 1 - (TAPS + 1) / 2, last_column = column + TAPS - 1 - (TAPS + 1) / 2;
#pragma unroll 1
    for (int ky = last_row & 1; ky < TAPS; ky += 2) {
        const int y = (last_row - ky) >> 1;
        if (y < 0 || y >= half_side) continue;
#pragma unroll
        for (int kx = 0; kx < TAPS; kx += 2) {
            const int k = kx + (last_column & 1);
            const int x = (last_column - k) >> 1;
            if (k >= TAPS || x < 0 || x >= half_side) continue;
            const float weight = taps[ky] * taps[k];
            float v[N];
            load_many<N>(low + ((size_t)y * half_side + x) * stride, v);
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] += weight * v[i];
        }
    }
}
