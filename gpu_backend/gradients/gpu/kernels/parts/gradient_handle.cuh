// A handle's state, HANDLE_FLOATS numbers, as gpu_backend/gradients/gpu/handles.py lays it out; and bilinear samples of features.
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
    size_t place[4];
    float weight[4];
};

// Corners of the sample at (x, y); beyond the border the outermost samples repeat.
__device__ __forceinline__ Corners corners_of(float x, float y, int side, int channels) {
    const float most = (float)(side - 1);
    x = fminf(fmaxf(x, 0.0f), most), y = fminf(fmaxf(y, 0.0f), most);
    const int left = (int)x, top = (int)y, right = min(left + 1, side - 1), bottom = min(top + 1, side - 1);
    const float u = x - (float)left, v = y - (float)top;
    Corners found;
    found.place[0] = (size_t)(top * side + left) * channels, found.weight[0] = (1.0f - u) * (1.0f - v);
    found.place[1] = (size_t)(top * side + right) * channels, found.weight[1] = u * (1.0f - v);
    found.place[2] = (size_t)(bottom * side + left) * channels, found.weight[2] = (1.0f - u) * v;
    found.place[3] = (size_t)(bottom * side + right) * channels, found.weight[3] = u * v;
    return found;
}

__device__ __forceinline__ float sample(const half_bits* features, const Corners& at, int channel) {
    float v = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) v = fmaf(at.weight[i], from_half(features[at.place[i] + channel]), v);
    return v;
}
