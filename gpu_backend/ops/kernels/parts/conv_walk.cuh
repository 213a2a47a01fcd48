// What the two fused convolutions share: how a block walks. It goes down a strip of the picture band by band, and in each
// band through the input channels step by step; what the next steps need is copied to shared memory meanwhile, across the
// end of a band too. With RESIDENT the weights of all steps are copied once and stay.
//
// Macros: DEPTH CHANNELS STAGES RESIDENT THREADS KERNEL_TAPS; PATCH_ROWS PATCH_COLUMNS PITCH of the pixels that a band needs,
// BEFORE rows and columns before the band's first. BOXES: the copy engine fetches, asked by one thread; otherwise every
// thread fetches its part. DECOUPLED, with BOXES: warps need not keep step, so that some multiply while others wait. It pays
// in large blocks that have a multiprocessor for themselves; elsewhere a barrier of the block costs less.
// part: tensor_core
#if BOXES
// part: copy_engine
#endif

#define CHUNKS (DEPTH / 8)
#define PATCH_NBYTES ((PATCH_ROWS * PITCH * DEPTH * 2 + 1023) / 1024 * 1024)
#define WEIGHT_NBYTES (KERNEL_TAPS * CHANNELS * DEPTH * 2)
#define WEIGHT_SPACE ((WEIGHT_NBYTES + 1023) / 1024 * 1024)
#define STAGE_NBYTES (PATCH_NBYTES + (RESIDENT ? 0 : WEIGHT_SPACE))
#define AHEAD (STAGES > 1 ? STAGES - 1 : 1)  // steps on their way while one is summed; with one stage none

// A gain may be applied before an activation that is homogeneous: once a channel instead of once a number.
#if ACTIVATION <= 2
#define GAIN_AFTER 1.0f
#define GAIN_BEFORE gain
#else
#define GAIN_AFTER gain
#define GAIN_BEFORE 1.0f
#endif

#define ONES 0x3C003C00u

// How the kernel's last parameter and its place in a Strip look: a tensor map, or nothing.
#if BOXES
#define BOX_MAP const __grid_constant__ TensorMap
#define BOX_PLACE(map, sample) , map, sample
#else
#define BOX_MAP const void* const
#define BOX_PLACE(map, sample)
#endif

// Two numbers and their noise (a word of two) through activation and clamp. The usual activations are cheap for two numbers of
// 16 bits at a time; the result is stored as such anyway.
__device__ __forceinline__ unsigned activated(float low, float high, unsigned noise, float gain_after, unsigned bound) {
#if ACTIVATION <= 2 && LEVEL >= 800
    return activated2(multiply_add2(to_half2(low, high), ONES, noise), bound);
#else
    float low_noise, high_noise;
    from_half2(noise, low_noise, high_noise);
    const float most = from_half((half_bits)(bound & 0xffffu));
    return to_half2(bounded(activate(low + low_noise) * gain_after, most), bounded(activate(high + high_noise) * gain_after, most));
#endif
}

// The same number, but the compiler does not know: what is computed from it is computed again each time instead of being
// kept in registers from band to band, where the sums are.
__device__ __forceinline__ int fresh(int value) {
    asm volatile("" : "+r"(value));
    return value;
}

struct Strip {
    const T* x;                // of the sample
    const unsigned char* weight;  // of the block's output channels
    int x0, side, cin, first_step, steps;
#if BOXES
    const TensorMap* map;
    int sample;
#endif
};

#if BOXES
// A stage is full when its copies have come. The last barrier is that of resident weights.
__shared__ __align__(8) unsigned long long full_barriers[STAGES + 1];
__device__ __forceinline__ unsigned full_barrier(unsigned stage) { return shared_address(full_barriers) + stage * 8; }
#endif
#if DECOUPLED
// A stage is empty when every warp has read it.
__shared__ __align__(8) unsigned long long empty_barriers[STAGES];
__device__ __forceinline__ unsigned empty_barrier(unsigned stage) { return shared_address(empty_barriers) + stage * 8; }
#endif

#if BOXES
__device__ __forceinline__ void load_weights(unsigned target, const Strip& strip, int step, unsigned barrier) {
    copy_run(target, strip.weight + static_cast<long long>(step) * WEIGHT_NBYTES, WEIGHT_NBYTES, barrier);
}

// What lies between the patch and the pitch comes along.
__device__ __forceinline__ void load_patch(unsigned target, const Strip& strip, int step, int y0, unsigned barrier) {
    copy_box(target, strip.map, step * DEPTH, strip.x0 - BEFORE, y0 - BEFORE, strip.sample, barrier);
}
#else
__device__ __forceinline__ void load_weights(unsigned target, const Strip& strip, int step) {
    const unsigned char* source = strip.weight + static_cast<long long>(step) * WEIGHT_NBYTES;
#pragma unroll
    for (int i = 0; i < (WEIGHT_NBYTES / 16 + THREADS - 1) / THREADS; ++i) {
        const int index = i * THREADS + threadIdx.x;
        if (WEIGHT_NBYTES / 16 % THREADS == 0 || index < WEIGHT_NBYTES / 16) copy_async(target + index * 16, source + index * 16, true);
    }
}

// A thread takes one chunk of one column, and of every ROWS_AT_ONCE-th row: little to compute, little to keep in registers.
#define ROW_CHUNKS (PATCH_COLUMNS * CHUNKS)
#define ROWS_AT_ONCE (THREADS / ROW_CHUNKS > 1 ? (THREADS / ROW_CHUNKS > PATCH_ROWS ? PATCH_ROWS : THREADS / ROW_CHUNKS) : 1)
__device__ __forceinline__ void load_patch(unsigned target, const Strip& strip, int step, int y0) {
    const int tid = fresh(threadIdx.x);
#pragma unroll
    for (int turn = 0; turn < (ROW_CHUNKS + THREADS - 1) / THREADS; ++turn) {
        const int item = ROW_CHUNKS > THREADS ? tid + turn * THREADS : tid % ROW_CHUNKS;
        const int first_row = ROW_CHUNKS > THREADS ? 0 : tid / ROW_CHUNKS;
        if (item >= ROW_CHUNKS || first_row >= ROWS_AT_ONCE) continue;
        const int chunk = item % CHUNKS, column = item / CHUNKS;
        const int x = strip.x0 + column - BEFORE, channel = step * DEPTH + chunk * 8;
        const bool is_inside = static_cast<unsigned>(x) < static_cast<unsigned>(strip.side) && channel < strip.cin;
        int y = y0 + first_row - BEFORE;
        const T* source = strip.x + static_cast<long long>(y * strip.side + x) * strip.cin + channel;
        const int stride = ROWS_AT_ONCE * strip.side * strip.cin;
        int pixel = first_row * PITCH + column;
#pragma unroll
        for (int i = 0; i < (PATCH_ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE; ++i) {
            const bool wanted = is_inside && static_cast<unsigned>(y) < static_cast<unsigned>(strip.side);
            if (PATCH_ROWS % ROWS_AT_ONCE == 0 || first_row + i * ROWS_AT_ONCE < PATCH_ROWS) {
                copy_async(target + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16, wanted ? source : strip.x, wanted);
            }
            source += stride;
            y += ROWS_AT_ONCE;
            pixel += ROWS_AT_ONCE * PITCH;
        }
    }
}
#endif

// Sixteen positions by sixteen input channels, for the pixel of the patch that this lane addresses.
__device__ __forceinline__ void load_positions(unsigned (&a)[4], unsigned patch, int pixel, int chunk) {
    load_matrices(a, patch + pixel * (DEPTH * 2) + exchanged(chunk, pixel) * 16);
}

// The copies of a walk, in order; each step of each band is one group, which fills a stage.
struct Walk {
    unsigned resident, stages;  // in shared memory
    int band, step, bands, y0, band_rows;
    unsigned oldest;  // the stage that is waited for next
    unsigned phase;

    __device__ __forceinline__ void begin(const Strip& strip) {
#if BOXES
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i <= STAGES; ++i) begin_barrier(full_barrier(i), 1);
#if DECOUPLED
#pragma unroll
            for (int i = 0; i < STAGES; ++i) begin_barrier(empty_barrier(i), THREADS / 32);
#endif
            publish_barriers();
            if (RESIDENT) {
                expect_bytes(full_barrier(STAGES), strip.steps * WEIGHT_NBYTES);
                for (int i = 0; i < strip.steps; ++i) load_weights(resident + i * WEIGHT_SPACE, strip, strip.first_step + i, full_barrier(STAGES));
            }
        }
        __syncthreads();
#else
        if (RESIDENT) {
            for (int i = 0; i < strip.steps; ++i) load_weights(resident + i * WEIGHT_SPACE, strip, strip.first_step + i);
        }
#endif
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) load_next(strip, i, 1);
    }

    // Asks for the next group, once its stage is empty: a barrier is past its phase 1 from the beginning.
    __device__ __forceinline__ void load_next(const Strip& strip, unsigned slot, unsigned empty_phase) {
        if (band < bands && strip.steps > 0) {
            const unsigned stage = stages + slot * STAGE_NBYTES;
            const int from = strip.first_step + step, row = y0 + band * band_rows;
#if BOXES
            if (threadIdx.x == 0) {
#if DECOUPLED
                wait_barrier(empty_barrier(slot), empty_phase);
#endif
                expect_bytes(full_barrier(slot), PATCH_ROWS * PITCH * DEPTH * 2 + (RESIDENT ? 0 : WEIGHT_NBYTES));
                if (!RESIDENT) load_weights(stage + PATCH_NBYTES, strip, from, full_barrier(slot));
                load_patch(stage, strip, from, row, full_barrier(slot));
            }
#else
            if (!RESIDENT) load_weights(stage + PATCH_NBYTES, strip, from);
            load_patch(stage, strip, from, row);
#endif
            if (++step == strip.steps) {
                step = 0;
                ++band;
            }
        }
#if !BOXES
        commit_copies();
#endif
    }

    // Waits until the oldest group is there, and returns where it lies; asks for the next one, into the stage left last.
    __device__ __forceinline__ unsigned next_stage(const Strip& strip, bool is_first) {
#if STAGES == 1
        if (!is_first) {
            __syncthreads();
            load_next(strip, 0, 1);
        }
#endif
#if DECOUPLED && STAGES > 1
        load_next(strip, left(), oldest == 0 ? phase ^ 1 : phase);
#endif
#if BOXES
        if (RESIDENT && is_first) wait_barrier(full_barrier(STAGES), 0);
        wait_barrier(full_barrier(oldest), phase);
#else
        wait_copies<STAGES == 1 ? 0 : AHEAD - 1>();
#endif
#if DECOUPLED
        __syncwarp();
        const unsigned stage = alike(stages + oldest * STAGE_NBYTES);
#else
        __syncthreads();
#if STAGES > 1
        load_next(strip, left(), 1);
#endif
        const unsigned stage = stages + oldest * STAGE_NBYTES;
#endif
        if (++oldest == STAGES) {
            oldest = 0;
            phase ^= 1;
        }
        return stage;
    }

    // The stage before the oldest.
    __device__ __forceinline__ unsigned left() const { return oldest == 0 ? STAGES - 1 : oldest - 1; }

    // Where the resident weights of a step lie.
    __device__ __forceinline__ unsigned resident_step(int step) const {
#if DECOUPLED
        return alike(resident + step * WEIGHT_SPACE);
#else
        return resident + step * WEIGHT_SPACE;
#endif
    }

    // The warp has read the stage that `next_stage` returned last.
    __device__ __forceinline__ void leave_stage() {
#if DECOUPLED
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(empty_barrier(left()));
#endif
    }

    // After a band's last step: what is read or overwritten next, every warp has written or read.
    __device__ __forceinline__ void end_steps(const Strip& strip) {
        if (DECOUPLED || strip.steps == 0) __syncthreads();
    }
};

// Sums of all shares of a tile, by the block that comes last; false for the others. Always added in the same order.
#if SPLIT > 1
template <int COUNT>
__device__ __forceinline__ bool add_shares(float* sum, float* workspace, unsigned* counters, int tile, int share) {
    __shared__ bool is_last;
    const int tid = threadIdx.x;
    float4* const parts = reinterpret_cast<float4*>(workspace) + static_cast<long long>(tile) * SPLIT * (COUNT / 4) * THREADS + tid;
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        parts[(share * (COUNT / 4) + i) * THREADS] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
    }
    __threadfence();
    __syncthreads();
    if (tid == 0) {
        is_last = atomicAdd(counters + tile, 1u) == SPLIT - 1;
        if (is_last) counters[tile] = 0;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum[i] = 0.0f;
#pragma unroll(COUNT > 32 ? 1 : 4)
    for (int s = 0; s < SPLIT; ++s) {
        float4 part[COUNT / 4];
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) part[i] = __ldcg(parts + (s * (COUNT / 4) + i) * THREADS);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            sum[4 * i] += part[i].x;
            sum[4 * i + 1] += part[i].y;
            sum[4 * i + 2] += part[i].z;
            sum[4 * i + 3] += part[i].w;
        }
    }
    return true;
}
#endif
