// Hopper's TMA: one thread issues the copy of a box of activations or of a run of bytes, and an mbarrier in shared memory counts the
// bytes that have arrived. A barrier alternates between phases 0 and 1; a phase ends when all expected bytes have arrived.
#pragma once
#include "parts/copies.cuh"

struct __align__(64) TensorMap {  // encoded by the driver: cuTensorMapEncodeTiled
    unsigned long long words[16];
};

__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Makes initialised barriers visible to TMA.
__device__ __forceinline__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(nbytes) : "memory");
}

// Whether the phase is over, after a wait of limited time.
__device__ __forceinline__ bool try_wait(unsigned barrier, unsigned phase) {
    unsigned over;
    asm volatile(
        "{.reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over;}"
        : "=r"(over) : "r"(barrier), "r"(phase) : "memory");
    return over != 0;
}

__device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned phase) {
    while (!try_wait(barrier, phase)) {}
}

// Copies a box of the size in the map, from a channel, column, row and sample on.
__device__ __forceinline__ void tma_load(
    unsigned target, const TensorMap* map, int channel, int column, int row, int picture, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(target),
        "l"(map), "r"(channel), "r"(column), "r"(row), "r"(picture), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void bulk_load(unsigned target, const void* source, unsigned nbytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
        "l"(__cvta_generic_to_global(source)), "r"(nbytes), "r"(barrier)
        : "memory");
}
