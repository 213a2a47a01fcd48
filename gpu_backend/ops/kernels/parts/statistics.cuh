// Statistics of a set of numbers: count, mean, M2 (sum of squared distances from the mean), minimum and maximum. Two sets
// merge exactly (Chan, Golub and LeVeque 1979). Comparisons keep NaN.
#pragma once

struct Statistics {
    float count, mean, m2, least, largest;
};

__device__ __forceinline__ float lesser(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float greater(float a, float b) { return a > b || a != a ? a : b; }

__device__ __forceinline__ Statistics no_statistics() { return {0.0f, 0.0f, 0.0f, __int_as_float(0x7f800000), __int_as_float(0xff800000)}; }

__device__ __forceinline__ Statistics merged(const Statistics& a, const Statistics& b) {
    const float count = a.count + b.count, share = count > 0.0f ? __fdiv_rn(b.count, count) : 0.0f;
    const float delta = b.mean - a.mean;
    return {
        count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share,
        lesser(a.least, b.least), greater(a.largest, b.largest)};
}
