// Copies from global to shared memory that go on beside what threads compute.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory; zeros where `wanted` is false (the address must still be a valid one).
__device__ __forceinline__ void copy_async(unsigned target, const void* source, bool wanted) {
#if LEVEL >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(source), "r"(wanted ? 16 : 0) : "memory");
#else
    uint4 value = make_uint4(0, 0, 0, 0);
    if (wanted) value = *reinterpret_cast<const uint4*>(source);
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(target), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
#endif
}

__device__ __forceinline__ void commit_copies() {
#if LEVEL >= 800
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

// Wait until at most LEFT of this thread's groups are under way.
template <int LEFT>
__device__ __forceinline__ void wait_copies() {
#if LEVEL >= 800
    asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
#endif
}
