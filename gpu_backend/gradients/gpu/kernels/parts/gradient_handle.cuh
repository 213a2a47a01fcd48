// A handle's state, HANDLE_FLOATS numbers, as gpu_backend/gradients/gpu/drag.py lays it out; and bilinear samples of features.
#pragma once

#define HANDLE_FLOATS 12
#define POSITION 0    // x, y in samples
#define TARGET 2      // x, y in samples
#define TRAIL 4       // x, y: where the last hop began
#define PULLS 6       // 1 where the handle is part of the loss
#define DIFFERENCE 7  // of the features at the position from the template
#define FIRST 8       // the difference at the first step after a hop
#define STEPS 9       // since the last hop
#define RESTED 10     // steps at the target

struct Corners {
    int place[4];
    float weight[4];
};

// Corners of the sample at (x, y); beyond the border the outermost samples repeat.
__device__ __forceinline__ Corners corners_of(float x, float y, int side, int channels) {
    const float most = (float)(side - 1);
    x = fminf(fmaxf(x, 0.0f), most), y = fminf(fmaxf(y, 0.0f), most);
    const int left = (int)x, top = (int)y, right = min(left + 1, side - 1), bottom = min(top + 1, side - 1);
    const float u = x - (float)left, v = y - (float)top;
    Corners found;
    found.place[0] = (top * side + left) * channels, found.weight[0] = (1.0f - u) * (1.0f - v);
    found.place[1] = (top * side + right) * channels, found.weight[1] = u * (1.0f - v);
    found.place[2] = (bottom * side + left) * channels, found.weight[2] = (1.0f - u) * v;
    found.place[3] = (bottom * side + right) * channels, found.weight[3] = u * v;
    return found;
}

#define SAMPLED 4  // channels of a thread

__device__ __forceinline__ void sample(const half_bits* features, const Corners& at, int channel, float (&v)[SAMPLED]) {
    float corners[4][SAMPLED];
#pragma unroll
    for (int i = 0; i < 4; ++i) load_many(features + at.place[i] + channel, corners[i]);
#pragma unroll
    for (int k = 0; k < SAMPLED; ++k) {
        v[k] = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) v[k] = fmaf(at.weight[i], corners[i][k], v[k]);
    }
}

// Features at a place minus a template, of SAMPLED channels from `channel` on; 0 for padding.
__device__ __forceinline__ void difference_from(
    const half_bits* features, const Corners& at, const float* wanted, int channel, int used, float (&v)[SAMPLED]) {
    float target[SAMPLED];
    sample(features, at, channel, v);
    load_many(wanted + channel, target);
#pragma unroll
    for (int k = 0; k < SAMPLED; ++k) v[k] = channel + k < used ? v[k] - target[k] : 0.0f;
}

// Adds two numbers to neighbouring fp16 ones, atomically. No clobber of memory: a kernel that adds reads no such number, and loads go on meanwhile.
__device__ __forceinline__ void add_to_halves(half_bits* to, float low, float high) {
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(to), "r"(to_half2(low, high)));
}
