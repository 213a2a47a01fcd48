// A kernel may begin while the one before it still runs, where the driver is told that it may (KernelRecipe.begins_early): it fetches
// what no kernel writes, and then waits for what that one leaves. The pointers to such arrays are not __restrict__, or the
// compiler might read them before. Waiting is also what lets the next kernel begin; where nothing came early, nothing waits.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
