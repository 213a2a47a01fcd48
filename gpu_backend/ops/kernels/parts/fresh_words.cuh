// Words that blocks pass on to each other in a run, without barriers: the last bit of a word, its tag, changes from run to run, so that a
// reader sees whether the word is of this run. Every word is written once a run. Loads and stores are relaxed: each word is looked at by
// itself, and nothing follows from one about another. Readers clear the tag, so that all runs compute the same. NCCL's protocol LL has
// a flag beside each word in the same way.
#pragma once

__device__ __forceinline__ unsigned tagged(unsigned word, unsigned tag) { return (word & ~1u) | tag; }
__device__ __forceinline__ float tagged(float value, unsigned tag) { return __uint_as_float(tagged(__float_as_uint(value), tag)); }

__device__ __forceinline__ uint4 load_relaxed(const void* from) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(__cvta_generic_to_global(from)) : "memory");
    return v;
}
__device__ __forceinline__ float load_relaxed_float(const float* from) {
    float v;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(__cvta_generic_to_global(from)) : "memory");
    return v;
}
__device__ __forceinline__ void store_relaxed(void* to, unsigned low, unsigned high) {
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(low), "r"(high) : "memory");
}
__device__ __forceinline__ void store_relaxed(float* to, float value) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "f"(value) : "memory");
}
__device__ __forceinline__ bool is_fresh(const uint4& v, unsigned tag) { return (((v.x ^ tag) | (v.y ^ tag) | (v.z ^ tag) | (v.w ^ tag)) & 1u) == 0u; }
__device__ __forceinline__ bool is_fresh(float v, unsigned tag) { return (__float_as_uint(v) & 1u) == tag; }

__device__ __forceinline__ uint4 without_tags(const uint4& v) { return make_uint4(v.x & ~1u, v.y & ~1u, v.z & ~1u, v.w & ~1u); }
__device__ __forceinline__ float without_tag(float v) { return __uint_as_float(__float_as_uint(v) & ~1u); }

__device__ __forceinline__ float load_fresh(const float* from, unsigned tag) {
    float v;
    do v = load_relaxed_float(from);
    while (!is_fresh(v, tag));
    return without_tag(v);
}
