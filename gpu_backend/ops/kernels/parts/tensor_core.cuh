// Tensor cores, and what feeds them: asynchronous copies, matrix loads, products of 16-bit numbers summed in 32 bits.
// Macros: DEPTH (input channels a step), WGMMA.

// part: copies
// part: halves

// Four 8 x 8 matrices of 16-bit numbers; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(unsigned (&value)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(address));
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8)
__device__ __forceinline__ void multiply(float* sum, const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if LEVEL >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

// Rows of 32, 64 or 128 bytes lie side by side; their 16-byte chunks are exchanged so that eight rows that are read
// together meet eight different groups of banks. These are also the 32-, 64- and 128-byte modes of wgmma.
__device__ __forceinline__ int exchanged(int chunk, int row) {
    if (DEPTH == 64) return chunk ^ (row & 7);
    if (DEPTH == 32) return chunk ^ ((row >> 1) & 3);
    return chunk ^ ((row >> 2) & 1);
}

#if WGMMA
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

// A number that all lanes of a warp have alike, where the compiler knows that they do: descriptors are computed once a warp.
__device__ __forceinline__ int alike(int value) { return static_cast<int>(__reduce_max_sync(0xffffffffu, static_cast<unsigned>(value))); }

// Descriptor of a matrix whose rows hold DEPTH numbers along k, chunks exchanged as above: its lower half, which says where
// the matrix begins, in units of 16 bytes; and its upper half, the same for all, so that moving on is one small addition.
__device__ __forceinline__ unsigned matrix_descriptor(unsigned address) { return ((address & 0x3FFFFu) >> 4) | (1u << 16); }
#define MATRIX_ROWS ((DEPTH == 64 ? 1u : DEPTH == 32 ? 2u : 3u) << 30 | (DEPTH * 16 >> 4))

// sum (64 x CHANNELS over four warps, 16 rows each) += a (64 x 16, in registers) * b (16 x CHANNELS, in shared memory)
#define F4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
template <int CHANNELS_>
__device__ __forceinline__ void wgmma(float* sum, const unsigned (&a)[4], unsigned b);

template <>
__device__ __forceinline__ void wgmma<16>(float* sum, const unsigned (&a)[4], unsigned b) {
    asm volatile(
        "{.reg .b64 matrix; mov.b64 matrix, {%12, %13}; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, matrix, 1, 1, 1, 0;}\n"
        : F4(0), F4(4)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));
}
template <>
__device__ __forceinline__ void wgmma<32>(float* sum, const unsigned (&a)[4], unsigned b) {
    asm volatile(
        "{.reg .b64 matrix; mov.b64 matrix, {%20, %21}; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "{%16, %17, %18, %19}, matrix, 1, 1, 1, 0;}\n"
        : F16(0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));
}
template <>
__device__ __forceinline__ void wgmma<64>(float* sum, const unsigned (&a)[4], unsigned b) {
    asm volatile(
        "{.reg .b64 matrix; mov.b64 matrix, {%36, %37}; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, matrix, 1, 1, 1, 0;}\n"
        : F16(0), F16(16)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));
}
template <>
__device__ __forceinline__ void wgmma<96>(float* sum, const unsigned (&a)[4], unsigned b) {
    asm volatile(
        "{.reg .b64 matrix; mov.b64 matrix, {%52, %53}; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47}, {%48, %49, %50, %51}, matrix, 1, 1, 1, 0;}\n"
        : F16(0), F16(16), F16(32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));
}
template <>
__device__ __forceinline__ void wgmma<128>(float* sum, const unsigned (&a)[4], unsigned b) {
    asm volatile(
        "{.reg .b64 matrix; mov.b64 matrix, {%68, %69}; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, matrix, 1, 1, 1, 0;}\n"
        : F16(0), F16(16), F16(32), F16(48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(MATRIX_ROWS));
}
#undef F16
#undef F4
#endif
