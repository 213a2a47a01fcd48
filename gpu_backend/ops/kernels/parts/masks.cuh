// Masks of blends (gpu_backend/ops/blend_samples.py): (mask_side, mask_side) floats over a square of side x side pixels.
#pragma once

enum : int { MASKS = 3 };  // MAX_BLENDS of gpu_backend/limits.py

// The mask at a pixel, interpolated bilinearly where the layer is larger and clamped at the edge. `step`: mask_side / side; at 1, the
// mask has the layer's side.
__device__ __forceinline__ float mask_at(const float* mask, int mask_side, float step, int pixel_row, int pixel_column) {
    if (step == 1.0f) return mask[pixel_row * mask_side + pixel_column];
    const float last = mask_side - 1.0f;
    const float column = fminf(fmaxf((pixel_column + 0.5f) * step - 0.5f, 0.0f), last);
    const float row = fminf(fmaxf((pixel_row + 0.5f) * step - 0.5f, 0.0f), last);
    const int left = (int)column, top = (int)row;
    const int right = min(left + 1, mask_side - 1), low = min(top + 1, mask_side - 1);
    const float to_right = column - left, down = row - top;
    const float upper = mask[top * mask_side + left] * (1.0f - to_right) + mask[top * mask_side + right] * to_right;
    const float lower = mask[low * mask_side + left] * (1.0f - to_right) + mask[low * mask_side + right] * to_right;
    return upper * (1.0f - down) + lower * down;
}

// Linear from a to b; exactly a at share 0 and b at 1.
__device__ __forceinline__ float blended(float a, float b, float share) {
    return share < 0.5f ? fmaf(share, b - a, a) : fmaf(share - 1.0f, b - a, b);
}
