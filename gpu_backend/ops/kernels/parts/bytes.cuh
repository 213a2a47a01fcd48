// Bytes of a picture, as in gpu_backend/ops/to_display.py. Macros: MIDDLE_TWICE, twice the byte of 0, by default 256; IMG_CHANNELS in
// kernels that use pixel_of.
#pragma once
#ifndef MIDDLE_TWICE
#define MIDDLE_TWICE 256
#endif

__device__ __forceinline__ unsigned to_byte(float v) {
    // Two roundings, as in StyleGAN's own conversion. NaN becomes 0.
    const float scaled = __fadd_rn(__fmul_rn(v, 127.5f), 0.5f * MIDDLE_TWICE);
    return (unsigned)fminf(fmaxf(scaled, 0.0f), 255.0f);
}

#ifdef IMG_CHANNELS
// The word of a pixel: blue in the lowest byte, then green, red, alpha. One channel or two: the first as grey.
__device__ __forceinline__ unsigned pixel_of(const float* channels) {
    if constexpr (IMG_CHANNELS == 3 || IMG_CHANNELS == 4) {
        const unsigned blue = to_byte(channels[2]), green = to_byte(channels[1]), red = to_byte(channels[0]);
        const unsigned alpha = IMG_CHANNELS == 4 ? to_byte(channels[3]) : 255u;
        return blue | green << 8 | red << 16 | alpha << 24;
    } else {
        const unsigned grey = to_byte(channels[0]);
        return grey | grey << 8 | grey << 16 | 255u << 24;
    }
}
#endif
