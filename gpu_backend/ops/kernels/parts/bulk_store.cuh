// Hopper's copies from shared memory to memory by TMA. Copies that a thread issues before it commits are a group, which it can wait for.
#pragma once
#include "parts/copies.cuh"
#include "parts/tma.cuh"

// What this thread wrote to shared memory is visible to copies that are issued after a barrier.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copies bytes, a multiple of 16, between addresses that are multiples of 16.
__device__ __forceinline__ void bulk_store(void* target, unsigned source, unsigned nbytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(target)), "r"(source), "r"(nbytes) : "memory");
}

__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until at most PENDING groups of this thread are not done; `bulk_wait_read`: until their source may be overwritten.
template <int PENDING>
__device__ __forceinline__ void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}
template <int PENDING>
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Copies input channels of successive outputs of a convolution at one tap, from that of a window at `column` and `row` on; zeros lie around the
// picture. The map has the numbers of channels and outputs.
__device__ __forceinline__ void tma_load_window(
    unsigned target, const TensorMap* map, int channel, int column, int row, int picture, int tap_column, int tap_row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(target),
        "l"(map), "r"(channel), "r"(column), "r"(row), "r"(picture), "r"(barrier), "h"((short)tap_column), "h"((short)tap_row)
        : "memory");
}
