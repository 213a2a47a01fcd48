// Blocks that are the slices of split-K of a tile are a cluster, and read each other's sums from shared memory. Macro CLUSTER: how many; one
// block, or none that adds up, if less than two.
#pragma once

#if CLUSTER > 1
#define WITH_CLUSTERS __cluster_dims__(1, 1, CLUSTER)
#else
#define WITH_CLUSTERS
#endif

// All threads of the tile's blocks have written what the others read.
__device__ __forceinline__ void wait_for_tile() {
#if CLUSTER > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::: "memory");
#else
    __syncthreads();
#endif
}

// Four sums of this block's shared memory, or of that of another block of the cluster.
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
