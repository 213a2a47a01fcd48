// Programmatic dependent launch, from Hopper on: in a graph, a kernel starts once all blocks of the one before it have ended, while what they
// wrote is still on its way to memory. It sets up barriers, copies what no kernel writes, and then waits. The driver starts only kernels
// early that include this (KernelRecipe.waits_by_itself).
//
// No kernel lets the next one start even earlier (griddepcontrol.launch_dependents): its blocks would crowd on the multiprocessors that are
// free first, where a grid of a wave or less is to have one block on each.
#pragma once
#include "parts/types.cuh"

// Returns once the kernel before has ended and what it wrote is visible. A thread calls it before it reads or writes anything in global
// memory that kernels write, or meets one that did at a barrier. At least one thread of a kernel calls it, so that its end means the end of
// all kernels before it.
__device__ __forceinline__ void wait_for_previous_kernel() {
    if constexpr (LEVEL >= 900) asm volatile("griddepcontrol.wait;" ::: "memory");
}
