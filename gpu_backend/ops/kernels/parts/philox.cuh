// Random noise of gpu_backend/ops/noise.py at any single pixel: Philox4x32-10, then the Box-Muller transform.
#pragma once

__device__ __forceinline__ uint4 philox4x32(uint4 c, unsigned k0, unsigned k1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        const unsigned high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

// sqrt(-2 ln((r + 0.5) / 2^32)) in fp32. Above one half the logarithm is taken of 1 - (~r + 0.5) / 2^32: rounding
// (r + 0.5) / 2^32 itself to 24 bits would lose most digits of the logarithm near 1.
__device__ __forceinline__ float normal_radius(unsigned r) {
    const float log_u = (r >> 31) ? log1pf(-((float)~r + 0.5f) * 0x1p-32f) : logf(((float)r + 0.5f) * 0x1p-32f);
    return sqrtf(-2.0f * log_u);
}

// Two normal numbers from two words. The angle 2 pi (r + 0.5) / 2^32 is reduced to -pi .. pi and counted in half turns, like the
// phase that is added to it.
__device__ __forceinline__ float2 normal_pair(unsigned r0, unsigned r1, float phase) {
    const float radius = normal_radius(r0);
    float sine, cosine;
    sincospif(((float)(int)r1 + 0.5f) * 0x1p-31f + phase, &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

// The noise at a pixel. Four words give the pixels 4 g .. 4 g + 3, each pair of words two of them.
__device__ __forceinline__ float noise_at(
    unsigned seed_low, unsigned seed_high, unsigned layer, unsigned pixel, float phase) {
    const uint4 words = philox4x32(make_uint4(pixel >> 2, 0u, layer, 0u), seed_low, seed_high);
    const float2 pair = (pixel & 2u) ? normal_pair(words.z, words.w, phase) : normal_pair(words.x, words.y, phase);
    return (pixel & 1u) ? pair.y : pair.x;
}
