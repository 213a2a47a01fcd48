// The output of a skip (gpu_backend/ops/skip_conv.py) that is shown as a layer: y = U(x), with the gain in `taps`.
// `x`: (batch, side / 2, side / 2, channels), `y`: (batch, side, side, channels). Macros: HALF, TAPS.
// Grid: groups of four channels of the pixels of a sample, 256 per block; samples.
#include "parts/doubling.cuh"

extern "C" __global__ void __launch_bounds__(256) doubled(
    const T* __restrict__ x, const float* __restrict__ taps, T* __restrict__ y, int side, int channels) {
    const int groups = channels / 4, item = blockIdx.x * 256 + threadIdx.x;
    if (item >= side * side * groups) return;
    const int pixel = item / groups, channel = item % groups * 4, half_side = side / 2;
    const size_t sample = blockIdx.y;
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    add_doubled<4>(v, x + sample * half_side * half_side * channels + channel, taps, side, channels, pixel / side, pixel % side);
    store_many<4>(y + (sample * side * side + pixel) * channels + channel, v);
}
