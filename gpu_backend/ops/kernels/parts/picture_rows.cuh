// The whole picture of a toRGB in the streaming convolution that computes its products, row by row, with its bytes straight to the host:
//     image = clamp(products + bias) + U(previous)
//     byte  = trunc(clamp(image * 127.5 + MIDDLE_TWICE / 2, 0, 255)), in the order B, G, R, X
// Roundings, and so bytes, are those of to_rgb.cu.
//
// A warp has sixteen pixels of a row, one for each lane whose bit 1 is clear. Lanes 0 to 29 hold the three channels of the ten pixels of `previous`
// that these are doubled from; a row of them is loaded one row of outputs before it is used. The 64 pixels of a warpgroup leave shared memory
// together, by TMA: stores by warps would cross PCIe as 64 bytes at a time, whose headers take a quarter of the rate.
//
// Macros: WARPGROUPS, MIDDLE_TWICE; IMG_CHANNELS is 3.
#pragma once
#include "parts/types.cuh"
#include "parts/bulk_store.cuh"
#include "parts/bytes.cuh"
#include "parts/doubling.cuh"

// Parameters, given by name in gpu_backend/cuda/launches/zero_copy.py. `host_slot` holds the address of the bytes in memory of the host; from byte
// `flag_at` on lies a flag, which is set if a number is not finite. That address, or `image`, may be null: not wanted.
#define PICTURE_ROWS_PARAMETERS                                                                                      \
    const float* __restrict__ picture_bias, float picture_clamp, const float* __restrict__ picture_previous,         \
    const float* __restrict__ picture_taps, float* __restrict__ image, unsigned char* const* __restrict__ host_slot, \
    unsigned flag_at

enum : int { ROW_SLOTS = 4, ROW_PIXELS = 64, LOW_NUMBERS = 30 };

__shared__ __align__(16) unsigned shared_pixels[WARPGROUPS][ROW_SLOTS][ROW_PIXELS];

__device__ __forceinline__ void sync_warpgroup(int warpgroup) { asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory"); }

struct PictureRows {
    const float *bias, *taps, *low;  // `low`: a lane's number of row 0 of the previous picture
    float* image;
    unsigned char* slot;
    float clamp, left, right, above, below, next;
    int side, first_column, warpgroup;
    unsigned flag_at;
    bool has_low;

    // Once the kernel before has ended.
    __device__ __forceinline__ PictureRows(
        const float* bias_, float clamp_, const float* previous, const float* taps_, float* image_, unsigned char* const* host_slot, unsigned flag_at_,
        int side_, int first_column_, int warpgroup_, int first_row)
        : bias(bias_), taps(taps_), image(image_), slot(*host_slot), clamp(clamp_), side(side_), first_column(first_column_), warpgroup(warpgroup_), flag_at(flag_at_) {
        const int lane = threadIdx.x & 31, number = ((first_column + threadIdx.x / 32 % 4 * 16 >> 1) - 1) * 3 + lane;
        has_low = lane < LOW_NUMBERS && static_cast<unsigned>(number) < static_cast<unsigned>((side >> 1) * 3);
        low = previous + number;
        left = taps[lane >> 2 & 1 ? 2 : 3], right = taps[lane >> 2 & 1 ? 0 : 1];
        const int row = first_row >> 1;
        above = of_row(row - 1), below = of_row(row), next = of_row(row + 1);
    }

    __device__ __forceinline__ float of_row(int row) const {
        const int low_side = side >> 1;
        return has_low && static_cast<unsigned>(row) < static_cast<unsigned>(low_side) ? low[row * (low_side * 3)] : 0.0f;
    }

    // Whether this thread issues the copies of its warpgroup.
    __device__ __forceinline__ bool is_sender() const { return threadIdx.x % 128 == 32; }

    // Takes the products of a row as mma.m16n8k16 leaves them: of pixel lane / 4 and of that eight to the right, two channels of lane % 4 each.
    // All lanes of the warpgroup call it, for rows one after another.
    __device__ __forceinline__ void take(const float (&products)[4], int row) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32 % 4;
        if (row & 1) above = below, below = next;
        else next = of_row((row >> 1) + 1);
        const float kept = doubled_from(above, taps[row & 1 ? 2 : 3], below, taps[row & 1 ? 0 : 1]);
        const bool is_second = lane & 1;
        const float one = __shfl_xor_sync(0xffffffffu, is_second ? products[0] : products[2], 1);
        const float other = __shfl_xor_sync(0xffffffffu, products[3], 1);
        float v[3] = {is_second ? one : products[0], is_second ? other : products[1], is_second ? products[2] : one};
        const int pixel = (lane >> 2) + (is_second ? 8 : 0), from = (pixel + 1 >> 1) * 3;
        bool is_finite = true;
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            const float first = __shfl_sync(0xffffffffu, kept, from + c), second = __shfl_sync(0xffffffffu, kept, from + 3 + c);
            v[c] = __fadd_rn(bounded(__fadd_rn(v[c], bias[c]), clamp), doubled_from(first, left, second, right));
            is_finite &= isfinite(v[c]);
        }
        const bool has_pixel = (lane & 2) == 0;
        if (image != nullptr && has_pixel) {
#pragma unroll
            for (int c = 0; c < 3; ++c) image[(row * side + first_column + warp * 16 + pixel) * 3 + c] = v[c];
        }
        if (slot == nullptr) return;
        unsigned* const staged = shared_pixels[warpgroup][row % ROW_SLOTS];
        if (has_pixel) staged[warp * 16 + pixel] = pixel_of(v);
        if (has_pixel && !is_finite) *reinterpret_cast<unsigned*>(slot + flag_at) = 1u;
        fence_async_proxy();
        sync_warpgroup(warpgroup);
        if (is_sender()) {
            bulk_store(slot + (row * side + first_column) * 4, shared_address(staged), ROW_PIXELS * 4);
            bulk_commit();
            bulk_wait_read<ROW_SLOTS / 2>();  // what the next row but one overwrites was read
        }
    }

    // After the last row.
    __device__ __forceinline__ void end() const {
        if (is_sender()) bulk_wait<0>();
    }
};
