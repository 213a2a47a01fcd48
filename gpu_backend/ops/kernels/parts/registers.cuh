// What the compiler is told about values in registers.
#pragma once

// Returns the same value, but the compiler does not know that. What is computed from the result is computed here, and again for
// each call: not kept in registers from one row tile to the next, where the sums are, and not moved up to where it would wait for a load.
__device__ __forceinline__ int opaque(int value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ __forceinline__ unsigned opaque(unsigned value) {
    asm volatile("" : "+r"(value));
    return value;
}
__device__ __forceinline__ float opaque(float value) {
    asm volatile("" : "+f"(value));
    return value;
}

// Returns a value that is the same in all lanes of a warp, and the compiler knows: what follows from it is computed once per warp, in
// uniform registers. From Ampere on; a template, since older architectures do not declare the intrinsic.
template <typename V>
__device__ __forceinline__ int warp_uniform(V value) {
    return static_cast<int>(__reduce_max_sync(0xffffffffu, static_cast<unsigned>(value)));
}
