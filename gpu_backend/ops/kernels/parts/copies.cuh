// Asynchronous copies from global to shared memory. Before sm_80, which has none, they are done at once.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes; writes zeros where `wanted` is false (`source` must be a valid address even then).
__device__ __forceinline__ void copy_async(unsigned target, const void* source, bool wanted) {
    if constexpr (LEVEL >= 800) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(source), "r"(wanted ? 16 : 0) : "memory");
    } else {
        uint4 value = make_uint4(0, 0, 0, 0);
        if (wanted) value = *reinterpret_cast<const uint4*>(source);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(target), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
    }
}

// Ends a group of this thread's copies.
__device__ __forceinline__ void commit_copies() {
    if constexpr (LEVEL >= 800) asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most LEFT of this thread's groups are in flight.
template <int LEFT>
__device__ __forceinline__ void wait_copies() {
    if constexpr (LEVEL >= 800) asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}
