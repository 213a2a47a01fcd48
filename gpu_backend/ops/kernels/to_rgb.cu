// The end of toRGB (gpu_backend/ops/to_rgb.py) and, at the last resolution, the bytes of gpu_backend/ops/to_display.py:
//     image = gain clamp(sum of parts + bias) + U(previous)
//     byte = trunc(clamp(image * 127.5 + MIDDLE_TWICE / 2, 0, 255)), in the order B, G, R, X
// Macros: IMG_CHANNELS, TAPS (of `taps`, gain 2 an axis in them), MIDDLE_TWICE (of `bytes`).
// `parts`: (part_count, batch, side, side, IMG_CHANNELS).
// A null pointer: no bias, no picture before, image or pixels not wanted. flags[b] gets bit 0 where a number is not finite.
// Grid: pixels of a sample, 256 a block; samples.
// part: doubling
// part: bytes

extern "C" __global__ void __launch_bounds__(256) to_rgb(
    const float* __restrict__ parts, int part_count, const float* __restrict__ bias, float clamp,
    const float* __restrict__ previous, const float* __restrict__ taps, float* __restrict__ image,
    unsigned char* __restrict__ pixels, unsigned* __restrict__ flags, int batch, int side, float gain) {
    const int b = blockIdx.y, area = side * side, pixel = blockIdx.x * 256 + threadIdx.x;
    if (pixel >= area) return;
    const size_t place = (size_t)b * area + pixel, part = (size_t)batch * area * IMG_CHANNELS;
    float v[IMG_CHANNELS];
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) v[i] = 0.0f;
    for (int p = 0; p < part_count; ++p) {
#pragma unroll
        for (int i = 0; i < IMG_CHANNELS; ++i) v[i] += parts[p * part + place * IMG_CHANNELS + i];
    }
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) v[i] = __fmul_rn(gain, bounded(v[i] + (bias == nullptr ? 0.0f : bias[i]), clamp));
    if (previous != nullptr) {
        const size_t half_side = side >> 1;
        add_doubled<IMG_CHANNELS>(
            v, previous + b * half_side * half_side * IMG_CHANNELS, taps, side, IMG_CHANNELS, pixel / side,
            pixel % side);
    }
    bool is_finite = true;
#pragma unroll
    for (int i = 0; i < IMG_CHANNELS; ++i) {
        is_finite &= isfinite(v[i]);
        if (image != nullptr) image[place * IMG_CHANNELS + i] = v[i];
    }
    if (pixels != nullptr) {
#if IMG_CHANNELS == 3
        const unsigned blue = to_byte(v[2]), green = to_byte(v[1]), red = to_byte(v[0]), alpha = 255u;
#elif IMG_CHANNELS == 4
        const unsigned blue = to_byte(v[2]), green = to_byte(v[1]), red = to_byte(v[0]), alpha = to_byte(v[3]);
#else
        const unsigned blue = to_byte(v[0]), green = blue, red = blue, alpha = 255u;
#endif
        reinterpret_cast<unsigned*>(pixels)[place] = blue | green << 8 | red << 16 | alpha << 24;
        if (!is_finite) atomicOr(flags + b, 1u);
    }
}
