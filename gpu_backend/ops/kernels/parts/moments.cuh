// What a StyleGAN1's convolution tells of the layer that it stores, for the normalisation after it (adain.cu): of a block's
// pixels the mean of every channel, and the sum of squares of what lies apart from it. A thread sums eight channels of what
// lies apart from a pixel that its warp has seen, so that a channel which hardly varies keeps its digits; halved, since 16
// bits hold that of any two numbers. What warps found is put together as Chan et al. 1983 do.
//
// Macros: CHANNELS (8 times a power of two), THREADS.
// part: types
// part: halves

#define MOMENT_GROUPS (CHANNELS / 8)
#define MOMENT_WARPS (THREADS / 32)
#define HALVES 0x38003800u
#define MINUS_HALVES 0xB800B800u

struct Moments {
    float* sums;        // [MOMENT_WARPS][2][CHANNELS] in shared memory, then what they are about: [MOMENT_WARPS][CHANNELS]
    unsigned about[4];  // minus half a pixel's channels
    float values[16];   // of a thread's channels in a band: sums, then sums of squares
    int tid;

    // For a band: what is needed from one to the next is in shared memory, so that the convolution has the registers.
    __device__ __forceinline__ explicit Moments(void* place) : sums(reinterpret_cast<float*>(place)), tid(opaque(threadIdx.x)) {
#pragma unroll
        for (int i = 0; i < 16; ++i) values[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) about[i] = 0u;
    }

    __device__ __forceinline__ half_bits* abouts(int warp) const {
        return reinterpret_cast<half_bits*>(sums + 2 * MOMENT_WARPS * CHANNELS) + warp * CHANNELS;
    }

    __device__ __forceinline__ void set_about(const unsigned (&pixel)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) about[i] = multiply_add2(pixel[i], MINUS_HALVES, 0u);
    }

    __device__ __forceinline__ void set_about(const half_bits* pixel) {
        const uint4 words = *reinterpret_cast<const uint4*>(pixel);
        set_about({words.x, words.y, words.z, words.w});
    }

    __device__ __forceinline__ void add(const unsigned (&pixel)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float low, high;
            from_half2(multiply_add2(pixel[i], HALVES, about[i]), low, high);
            values[2 * i] += low, values[2 * i + 1] += high;
            values[2 * i + 8] = fmaf(low, low, values[2 * i + 8]), values[2 * i + 9] = fmaf(high, high, values[2 * i + 9]);
        }
    }

    // Adds up the threads of a warp that have the same channels: at every turn a thread gives half of its values away.
    __device__ __forceinline__ void end_band(bool is_first) {
        const int lane = tid & 31, group = lane % MOMENT_GROUPS;
#pragma unroll
        for (int turn = 0; turn < 4; ++turn) {
            const int other = 16 >> turn, half = 8 >> turn;
            if (other < MOMENT_GROUPS) continue;
            const bool is_upper = lane & other;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (i >= half) continue;
                const float sent = is_upper ? values[i] : values[i + half], kept = is_upper ? values[i + half] : values[i];
                values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, other);
            }
        }
        const int first = lane / MOMENT_GROUPS * (MOMENT_GROUPS / 2);
        float* const to = sums + (tid / 32 * 2 + first / 8) * CHANNELS + group * 8 + first % 8;
#pragma unroll
        for (int i = 0; i < MOMENT_GROUPS / 2; ++i) to[i] = values[i] + (is_first ? 0.0f : to[i]);
    }

    // Mean and sum of squares of the block's pixels, of so many channels. count_of: pixels that a warp has summed. With
    // about_stride 0 all warps sum about the pixel of the first, else it is CHANNELS. All threads come here.
    template <typename CountOf>
    __device__ __forceinline__ void store(float2* to, int channels, int about_stride, CountOf count_of) const {
        __syncthreads();
        for (int c = tid; c < channels; c += THREADS) {
            const float about_all = from_half(abouts(0)[c]);
            float sum = 0.0f, square = 0.0f, count = 0.0f;
#pragma unroll 1
            for (int w = 0; w < MOMENT_WARPS; ++w) {
                const float own = 2.0f * sums[w * 2 * CHANNELS + c], own_square = 4.0f * sums[(w * 2 + 1) * CHANNELS + c];
                const float pixels = (float)count_of(w);
                const float apart = pixels > 0.0f ? from_half(abouts(0)[w * about_stride + c]) - about_all : 0.0f;
                sum += fmaf(pixels, apart, own);
                square += fmaf(apart, fmaf(pixels, apart, 2.0f * own), own_square);
                count += pixels;
            }
            const float apart = sum / count, rest = square - sum * apart;
            to[c] = make_float2(about_all + apart, rest < 0.0f ? 0.0f : rest);
        }
    }
};
