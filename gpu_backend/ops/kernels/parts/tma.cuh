// Hopper's TMA: one thread asks for a box of activations or a run of bytes, and a barrier in shared memory tells
// when they are there. A barrier goes through phases, 0 and 1 in turn; one ends when the bytes that it expects have come.
#pragma once
#include "parts/copies.cuh"

struct __align__(64) TensorMap {  // the driver makes it: cuTensorMapEncodeTiled
    unsigned long long words[16];
};

__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Barriers that were begun are there for the engine too.
__device__ __forceinline__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(nbytes) : "memory");
}

// True when the phase is over; waits for it for a while.
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

// Of the box that the map describes, from a channel, column, row and picture on.
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
