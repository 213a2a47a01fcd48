// Blocks that share a result through their shared memory: a cluster of CLUSTER blocks along the grid's third dimension. Less than 2: one
// block alone, as before Hopper.
#pragma once

#if CLUSTER > 1
#define WITH_CLUSTERS __cluster_dims__(1, 1, CLUSTER)
#else
#define WITH_CLUSTERS
#endif

// Returns once all blocks of the cluster run, so that their shared memory may be written. Orders no memory, and so waits for no load.
__device__ __forceinline__ void start_cluster() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
#endif
}

// Returns once all threads of the cluster are here; what they stored before is visible.
__device__ __forceinline__ void sync_cluster() {
#if CLUSTER > 1
    __syncwarp();  // the barrier takes whole warps
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::: "memory");
#else
    __syncthreads();
#endif
}

// Stores v at the same place of the shared memory of every block of the cluster.
__device__ __forceinline__ void store_in_cluster(float* to, float v) {
#if CLUSTER > 1
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(to));
#pragma unroll
    for (int block = 0; block < CLUSTER; ++block) {
        unsigned there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(own), "r"(block));
        asm volatile("st.shared::cluster.f32 [%0], %1;\n" ::"r"(there), "f"(v) : "memory");
    }
#else
    *to = v;
#endif
}

// Four numbers of this block's shared memory, or of that of another block of the cluster.
__device__ __forceinline__ void load_sums(unsigned address, int block, float (&v)[4]) {
#if CLUSTER > 1
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(there));
#else
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address));
#endif
}
