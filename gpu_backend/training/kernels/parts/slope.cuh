// The slope of clamp(leaky ReLU(.) gain), told from its result y.
#pragma once
__device__ __forceinline__ float slope_at(float y, float gain, float below, float bound) {
    const float slope = y > 0.0f ? gain : gain * below;
    return fabsf(y) < bound ? slope : 0.0f;
}

// Sums over the pixels of a block, for every channel: `mine` of every thread, by way of `shared`, to channels floats.
__device__ __forceinline__ void sum_lanes(
    const Elements& mine, float* shared, float* to, int channels, int group, int lane, int lanes) {
    __syncthreads();
    if (lane < lanes) {
#pragma unroll
        for (int i = 0; i < V; ++i) shared[lane * channels + group * V + i] = mine.of[i];
    }
    __syncthreads();
    for (int channel = threadIdx.x; channel < channels; channel += THREADS) {
        float sum = 0.0f;
        for (int other = 0; other < lanes; ++other) sum += shared[other * channels + channel];
        to[channel] = sum;
    }
}
