// A row of the table of layers, LAYER_INTS integers, made by gpu_backend/gradients/gpu/network.py.
#pragma once

#define LAYER_INTS 12
#define INPUTS 0         // channels of the layer's input, of its style
#define OUTPUTS 1        // channels of its output, of its demodulation; 0 for toRGB
#define STYLE 2          // where the style begins
#define DEMOD 3          // where the demodulation begins
#define AFFINE 4         // where the affine matrix begins, in rows of w_dim
#define SQUARES 5        // where the sums of squares begin
#define W_ROW 6          // the row of w
#define STYLE_SUMS 7     // where the style's sums begin
#define STYLE_BLOCKS 8   // rows of them
#define DEMOD_SUMS 9     // where the demodulation's sums begin
#define DEMOD_BLOCKS 10  // rows of them
#define SQUARES_UNIT 11  // a float: what the sums of squares are to be multiplied by

__device__ __forceinline__ float warp_total(float v) {
#pragma unroll
    for (int other = 16; other > 0; other >>= 1) v += __shfl_xor_sync(0xffffffffu, v, other);
    return v;
}
