// The picture of a block: toRGB of its features, and the doubled picture of the block before.
//
//     planes[k] = sum_c z_c style_c W[k, c] + bias[k],   picture[k] = clamp(planes[k]) + doubled(before)[k]
//     doubled(before)[y, x] = sum_ij f[i] f[j] before[(y + i - left) / 2, (x + j - left) / 2]  where both are whole
//
// Pictures and planes are fp32, [sample][3][side][side]. `filter` has the resampling filter's taps, turned and times 2. Macros: TAPS, of the
// filter; LANES, see parts/gradient_colours.cuh. Grid: groups of 1024 / LANES pixels, samples; 12 bytes of dynamic shared memory for each channel.
#define HALF 1
#define COLOURS 3
#include "parts/types.cuh"
#include "parts/gradient_colours.cuh"
#include "parts/previous_kernel.cuh"

enum : int {
    THREADS = 256,
    MOST_PAIRS = (TAPS + 1) / 2,  // of a tap and a sample along an axis
    OWN = SHARERS == 1 ? COLOURS : 1,  // colours of a thread's pixel that it completes
    FIT_BLOCKS = SHARERS > 1 ? 2 : LEVEL < 1000 ? 4 : 3,  // of a multiprocessor; each waits for memory most of the time
};
static_assert(SHARERS == 1 || SHARERS >= COLOURS, "each colour has a thread");

extern "C" __global__ void __launch_bounds__(THREADS, FIT_BLOCKS) gradient_picture(
    const half_bits* __restrict__ z, const float* __restrict__ style, const float* __restrict__ weight,
    const float* __restrict__ bias, const float* __restrict__ filter, const float* __restrict__ before,
    float* __restrict__ planes, float* __restrict__ picture, int side, int channels, int left, int style_count, float clamp) {
    extern __shared__ float4 shared[];
    __shared__ float plane_bias[COLOURS];
    float* scaled = reinterpret_cast<float*>(shared);
    const int sample = blockIdx.y, pixels = side * side;
    const int first = (blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * WARP_PIXELS, count = min(WARP_PIXELS, pixels - first);
    const half_bits* from = z + ((size_t)sample * pixels + min(first, pixels - 1)) * channels;
    // The kernel before wrote nothing but `before`, if there is that: z and styles are there already.
    if (!before) wait_for_previous_kernel();
    uint4 v[STEPS][TURNS];
    load_pixels(from, threadIdx.x % LANES * 8, channels, max(count, 1), v);
    if (threadIdx.x < COLOURS) plane_bias[threadIdx.x] = bias[threadIdx.x];
#pragma unroll(SHARERS == 1 ? 1 : 2)
    for (int i = threadIdx.x; i < channels; i += THREADS) {
        const float s = style[(size_t)sample * style_count + i];
#pragma unroll
        for (int k = 0; k < COLOURS; ++k) scaled[k * channels + i] = weight[k * channels + i] * s;
    }
    wait_for_previous_kernel();
    const int pixel = first + own_pixel(), colour = SHARERS == 1 ? 0 : threadIdx.x % SHARERS;
    float doubled[OWN] = {};
    if (before) {
        const int half_side = side / 2, half_pixels = half_side * half_side;
        const int row = pixel / side - left, column = pixel % side - left;
        const int first_row = row & 1, first_column = column & 1;  // the first tap that meets a sample
        // Unsigned, so that an address is one instruction.
        const unsigned first_plane = (sample * COLOURS + min(colour, COLOURS - 1)) * half_pixels;
#pragma unroll
        for (int i = 0; i < MOST_PAIRS; ++i) {
            const int tap_row = first_row + 2 * i, in_row = (row + tap_row) >> 1, safe_row = min(max(in_row, 0), half_side - 1);
            const float row_share = tap_row < TAPS && in_row == safe_row ? filter[tap_row] : 0.0f;
#pragma unroll
            for (int j = 0; j < MOST_PAIRS; ++j) {
                // No branch around the load, so that many are under way together.
                const int tap = first_column + 2 * j, in_column = (column + tap) >> 1, safe_column = min(max(in_column, 0), half_side - 1);
                const float share = tap < TAPS && in_column == safe_column ? row_share * filter[tap] : 0.0f;
#pragma unroll
                for (int k = 0; k < OWN; ++k)
                    doubled[k] = fmaf(share, before[first_plane + k * half_pixels + safe_row * half_side + safe_column], doubled[k]);
            }
        }
    }
    __syncthreads();
    float sum[COLOURS];
    sum_colours(from, scaled, channels, max(count, 1), v, sum);
    if (own_pixel() >= count || colour >= COLOURS) return;
#pragma unroll
    for (int k = 0; k < OWN; ++k) {
        const float own = OWN == COLOURS ? sum[k] : colour == 0 ? sum[0] : colour == 1 ? sum[1] : sum[2];
        const float plane = own + plane_bias[colour + k];
        const unsigned place = (sample * COLOURS + colour + k) * pixels + pixel;
        planes[place] = plane, picture[place] = bounded(plane, clamp) + doubled[k];
    }
}
