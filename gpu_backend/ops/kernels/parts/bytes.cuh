// The rule of gpu_backend/ops/to_display.py. Macro: MIDDLE_TWICE, twice the byte of 0; 256 where nothing is said.
#pragma once
#ifndef MIDDLE_TWICE
#define MIDDLE_TWICE 256
#endif

__device__ __forceinline__ unsigned to_byte(float v) {
    // Two roundings, as the official rule has; a number that is none becomes 0.
    const float scaled = __fadd_rn(__fmul_rn(v, 127.5f), 0.5f * MIDDLE_TWICE);
    return (unsigned)fminf(fmaxf(scaled, 0.0f), 255.0f);
}
