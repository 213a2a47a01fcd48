// A 1 x 1 or 3 x 3 convolution of scaled activations as a matrix product on Hopper's tensor cores, times demodulation, plus bias, times the
// style of the convolution that reads it. The pixels of a picture are one column: rows of the product are output pixels, columns are output
// channels, and both factors are read from shared memory. At each tap of a 3 x 3 kernel TMA copies the pixels anew, whole runs of outputs across
// the ends of rows (its mode "im2col"), so that no tile reaches over a border; the second-level cache has them.
//
// A block computes CHANNELS output channels of tiles of PIXELS pixels, each gridDim.x tiles after the one before. Each of its first WARPGROUPS
// warpgroups multiplies FRAGMENTS times 64 pixels; one thread of the last warpgroup issues all copies, a step of DEPTH input channels at one
// tap at a time, across the ends of tiles too. A warp finishes its sixteen pixels of a fragment by itself, in shared memory, from where they
// are copied to y while products of the next tile go on.
//
// Macros, given by flat_recipe in gpu_backend/cuda/launches/flat_conv.py:
//     PIXELS CHANNELS DEPTH STAGES WARPGROUPS WEIGHTS_IN_SMEM STORES LAST_PRODUCTS: see FlatGeometry in
//         gpu_backend/ops/kernels/flat_tile.py
//     KERNEL: 1 or 3. PADDING: zeros around the input, 0 with KERNEL 1
//     LOOP_NBYTES: FlatGeometry.loop_nbytes
//     HALF and USE_WGMMA are 1, ACTIVATION is 0. FP8_X: see parts/e4m3.cuh
//
// Dynamic shared memory, from the first multiple of 1024 bytes on (FlatGeometry.dynamic_nbytes in flat_tile.py):
//     weights     all steps x WEIGHT_SPACE                     with WEIGHTS_IN_SMEM
//     stage 0     PATCH_NBYTES of pixels | WEIGHT_SPACE of weights, unless WEIGHTS_IN_SMEM
//     ...
//     stage STAGES - 1
//     store       of each warp STORES x SLICE_NBYTES: 16 pixels x PITCH
// All but the weights of WEIGHTS_IN_SMEM is LOOP_NBYTES, alignment included.
// Static: demodulation, bias and style of the block's channels; barriers.
//
// Pipeline of a tile. Copies run up to STAGES steps in front of the products, across the end of a tile too:
//     copies    | s+1 -> stage | s+2 -> stage | ...            by one thread of the last warpgroup
//     products  | step s       | step s+1     | ...            of all other warpgroups; those of one step go on while the next begins
//     epilogue                                | demodulation, bias, style -> store -> y by TMA, of each warp by itself
#include "parts/types.cuh"
#include "parts/previous_kernel.cuh"
#include "parts/bulk_store.cuh"
#include "parts/registers.cuh"
#include "parts/tma.cuh"
#include "parts/wgmma_shared.cuh"

enum : int {
    WARPS = 4 * WARPGROUPS,  // that multiply
    THREADS = 32 * WARPS + 128,
    FRAGMENTS = PIXELS / 64 / WARPGROUPS,
    TAPS = KERNEL * KERNEL,
    NF = CHANNELS / 8,
    PATCH_NBYTES = PIXELS * ROW_NBYTES,
    WEIGHT_NBYTES = CHANNELS * ROW_NBYTES,  // of a step
    WEIGHT_SPACE = (WEIGHT_NBYTES + 1023) / 1024 * 1024,
    STAGE_NBYTES = PATCH_NBYTES + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_SPACE),
    COPIED_NBYTES = PATCH_NBYTES + (WEIGHTS_IN_SMEM ? 0 : WEIGHT_NBYTES),  // to a stage
    PITCH = 2 * CHANNELS + (NF % 2 == 0 ? 16 : 0),  // bytes from a pixel to the next: other banks
    SLICE_NBYTES = 16 * PITCH,
    // Registers of a thread at the launch; the warpgroup that copies gives up most of its own to the others.
    EVEN_REGISTERS = 65536 / THREADS / 8 * 8,
    COPY_REGISTERS = 24,
    MOVES_REGISTERS = EVEN_REGISTERS < 256,  // more than a thread can have
    PRODUCT_REGISTERS = EVEN_REGISTERS + (EVEN_REGISTERS - COPY_REGISTERS) / WARPGROUPS / 8 * 8,
};
static_assert(HALF && USE_WGMMA, "the kernel multiplies fp16 or e4m3 by wgmma");
static_assert(PIXELS == 64 * WARPGROUPS * FRAGMENTS && PIXELS <= 256, "a copy has 256 pixels at most");
static_assert(FRAGMENTS % STORES == 0, "a warp stores its fragments one after another");
static_assert(KERNEL == 3 || (KERNEL == 1 && PADDING == 0), "pixels of a 1 x 1 convolution are those of the input");
static_assert(LAST_PRODUCTS >= 1 && LAST_PRODUCTS <= PRODUCTS, "the last step has products");
static_assert(1024 + STAGES * STAGE_NBYTES + WARPS * STORES * SLICE_NBYTES == LOOP_NBYTES, "stages and store lie in the launch's shared memory");

__shared__ __align__(8) unsigned long long full_barriers[STAGES + 1], empty_barriers[STAGES];  // the last: weights that stay
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }

// Changes how many registers each thread of a warpgroup has; the sum over the block does not grow.
template <int REGISTERS>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
    if constexpr (MOVES_REGISTERS) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ __forceinline__ void warpgroup_reg_alloc() {
    if constexpr (MOVES_REGISTERS) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// A barrier of the threads that multiply.
__device__ __forceinline__ void sync_product_warps() { asm volatile("bar.sync 1, %0;" ::"n"(32 * WARPS) : "memory"); }

// A place in the ring of stages.
struct Slot {
    int index, phase;
    __device__ __forceinline__ void advance() {
        if (++index == STAGES) index = 0, phase ^= 1;
    }
    __device__ __forceinline__ int before() const { return index == 0 ? STAGES - 1 : index - 1; }
};

// sum += pixels * weights for the first COUNT products of a step, as one group; products of the group before may go on.
template <int COUNT>
__device__ __forceinline__ void accumulate(float (&sum)[FRAGMENTS][NF * 4], unsigned pixels, unsigned weights, bool adds) {
    const unsigned a = matrix_descriptor(pixels), b = matrix_descriptor(weights);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) {
            wgmma_shared<CHANNELS>(sum[m], a + (m * 64 * ROW_NBYTES + k * 32 >> 4), b + (k * 32 >> 4), adds || k > 0);
        }
    }
    wgmma_commit();
    wgmma_wait<1>();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) flat_conv(
    const void* __restrict__ weight, T* __restrict__ y, const float* __restrict__ demod, const float* __restrict__ next_style,
    const float* __restrict__ bias, int side, int cin, int cout, int demod_stride, int style_stride, const __grid_constant__ TensorMap tma_map) {
    extern __shared__ unsigned char unaligned[];
    __shared__ __align__(16) float2 shared_demod_bias[CHANNELS];
    __shared__ __align__(16) T shared_style[CHANNELS];
    const unsigned pool = (shared_address(unaligned) + 1023) / 1024 * 1024;
    const int tid = threadIdx.x, warp = tid / 32, lane = tid & 31, sample = blockIdx.z, n0 = blockIdx.y * CHANNELS;
    const int steps = (cin + DEPTH - 1) / DEPTH * TAPS, pixels = side * side, tiles = (pixels + PIXELS - 1) / PIXELS;
    const unsigned stages = pool + (WEIGHTS_IN_SMEM ? steps * WEIGHT_SPACE : 0);
    if (tid == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; ++i) init_barrier(full_barrier(i), 1), init_barrier(empty_barrier(i), WARPS);
        init_barrier(full_barrier(STAGES), 1);
        fence_barrier_init();
    }
    __syncthreads();

    if (warp >= WARPS) {
        warpgroup_reg_dealloc<COPY_REGISTERS>();
        if (tid != 32 * WARPS) return;
        const unsigned char* const weights = static_cast<const unsigned char*>(weight) + static_cast<long long>(blockIdx.y) * steps * WEIGHT_NBYTES;
        if constexpr (WEIGHTS_IN_SMEM) {
            expect_bytes(full_barrier(STAGES), steps * WEIGHT_NBYTES);
            for (int step = 0; step < steps; ++step) {
                bulk_load(pool + step * WEIGHT_SPACE, weights + step * WEIGHT_NBYTES, WEIGHT_NBYTES, full_barrier(STAGES));
            }
        }
        wait_for_previous_kernel();
        Slot slot = {0, 1};  // a barrier is past its phase 1 from the beginning
#pragma unroll 1
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int first = tile * PIXELS;
#pragma unroll 1
            for (int step = 0; step < steps; ++step) {
                const unsigned stage = stages + slot.index * STAGE_NBYTES, barrier = full_barrier(slot.index);
                wait_barrier(empty_barrier(slot.index), slot.phase);
                expect_bytes(barrier, COPIED_NBYTES);
                if constexpr (TAPS == 1) {
                    tma_load(stage, &tma_map, step * DEPTH, 0, first, sample, barrier);
                } else {
                    const int tap = step % TAPS;
                    tma_load_window(stage, &tma_map, step / TAPS * DEPTH, first % side - PADDING, first / side - PADDING, sample, tap % KERNEL,
                                    tap / KERNEL, barrier);
                }
                if constexpr (!WEIGHTS_IN_SMEM) bulk_load(stage + PATCH_NBYTES, weights + step * WEIGHT_NBYTES, WEIGHT_NBYTES, barrier);
                slot.advance();
            }
        }
        return;
    }

    warpgroup_reg_alloc<PRODUCT_REGISTERS>();
    wait_for_previous_kernel();
    for (int i = tid; i < CHANNELS; i += 32 * WARPS) {
        const int channel = n0 + i;
        const bool is_there = channel < cout;
        shared_demod_bias[i] = make_float2(!is_there ? 0.0f : (demod ? demod[sample * demod_stride + channel] : 1.0f) * FP8_X_UNIT,
                                           is_there && bias ? bias[channel] : 0.0f);
        shared_style[i] = to_element(!is_there ? 0.0f : next_style ? next_style[sample * style_stride + channel] : 1.0f);
    }
    sync_product_warps();
    if constexpr (WEIGHTS_IN_SMEM) wait_barrier(full_barrier(STAGES), 0);
    const int warpgroup = warp_uniform(tid / 128);
    const unsigned own_pixels = warpgroup * (FRAGMENTS * 64 * ROW_NBYTES);
    Slot slot = {0, 0};
    auto wait_for_stage = [&] {
        wait_barrier(full_barrier(slot.index), slot.phase);
        __syncwarp();
        return static_cast<unsigned>(warp_uniform(stages + slot.index * STAGE_NBYTES));
    };
    auto weights_of = [&](unsigned stage, int step) {
        return WEIGHTS_IN_SMEM ? static_cast<unsigned>(warp_uniform(pool + step * WEIGHT_SPACE)) : stage + PATCH_NBYTES;
    };
    auto release_previous = [&](int step) {  // products of this step go on, those before are done
        if (step > 0 && lane == 0) arrive(empty_barrier(slot.before()));
        slot.advance();
    };
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sum[FRAGMENTS][NF * 4];
        for (int step = 0; step < steps - TAPS; ++step) {
            const unsigned stage = wait_for_stage();
            accumulate<PRODUCTS>(sum, stage + own_pixels, weights_of(stage, step), step > 0);
            release_previous(step);
        }
#pragma unroll 1
        for (int step = steps - TAPS; step < steps; ++step) {
            const unsigned stage = wait_for_stage();
            accumulate<LAST_PRODUCTS>(sum, stage + own_pixels, weights_of(stage, step), step > 0);
            release_previous(step);
        }
        wgmma_wait<0>();
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) wgmma_fence_sums(sum[m]);
        if (lane == 0) arrive(empty_barrier(slot.before()));

        // A lane holds, of a fragment, the pixels lane / 4 and lane / 4 + 8 of its warp; of each eight output channels, two neighbours.
        const int thread = opaque(threadIdx.x), place = thread % 32, own_warp = thread / 32;  // computed anew, where sums need all registers
        const unsigned store = stages + STAGES * STAGE_NBYTES + own_warp * (STORES * SLICE_NBYTES);
#pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) {
            const unsigned slice = store + m % STORES * SLICE_NBYTES;
            const int first = tile * PIXELS + (own_warp / 4 * FRAGMENTS + m) * 64 + own_warp % 4 * 16;
            bulk_wait_read<STORES - 1>();  // the slice was read
            __syncwarp();
#pragma unroll
            for (int n = 0; n < NF; ++n) {
                const int channel = n * 8 + place % 4 * 2;
                const float4 factors = *reinterpret_cast<const float4*>(&shared_demod_bias[channel]);
                const Pair style = load_pair(&shared_style[channel]);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float* const v = sum[m] + n * 4 + half * 2;
                    const Pair pair = pair_of(v[0] * factors.x + factors.y, v[1] * factors.z + factors.w);
                    store_pair(slice + (half * 8 + place / 4) * PITCH + channel * 2, styled(pair, style));
                }
            }
            fence_async_proxy();
            __syncwarp();
            const int count = min(16, pixels - first);  // of pixels that are there
            T* const to = y + (static_cast<long long>(sample) * pixels + first) * cout + n0;
            if (PITCH == 2 * CHANNELS && cout == CHANNELS) {  // all pixels follow each other in memory too
                if (place == 0 && count > 0) bulk_store(to, slice, count * PITCH);
            } else if (place < count) {
                if (place < 16) bulk_store(to + place * cout, slice + place * PITCH, 2 * min(CHANNELS, cout - n0));
            }
            bulk_commit();
        }
    }
    bulk_wait<0>();
}
