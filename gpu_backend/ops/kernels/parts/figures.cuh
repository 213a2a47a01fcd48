// Figures of a set of numbers, which sets can be joined by (Chan, Golub and LeVeque 1979): how many, their mean, the sum
// of squared distances from it, the least and the largest. Comparisons are written so that NaN stays NaN.

struct Figures {
    float count, mean, squares, least, largest;
};

__device__ __forceinline__ float lesser(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float greater(float a, float b) { return a > b || a != a ? a : b; }

__device__ __forceinline__ Figures no_figures() { return {0.0f, 0.0f, 0.0f, __int_as_float(0x7f800000), __int_as_float(0xff800000)}; }

__device__ __forceinline__ Figures joined(const Figures& a, const Figures& b) {
    const float count = a.count + b.count, share = count > 0.0f ? __fdiv_rn(b.count, count) : 0.0f;
    const float apart = b.mean - a.mean;
    return {
        count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share,
        lesser(a.least, b.least), greater(a.largest, b.largest)};
}
