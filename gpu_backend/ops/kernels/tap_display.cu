// A layer as a picture (gpu_backend/ops/tap_display.py): its bytes, its statistics, the values of one channel, the flag.
// Every block merges the partials of the shown channels in a fixed order; the first block of a sample writes the statistics.
// tap_statistics.cu writes the partials: `stretches` of `stretch` pixels, slabs of `slab` channels.
// `tap`: channels for R, G and B, gain, whether each channel is divided by its largest magnitude, clamped to `least` .. `most`.
// Macro HALF. Grid: any number of blocks; samples.
#include "parts/types.cuh"
#include "parts/statistics.cuh"
#include "parts/bytes.cuh"

enum : int { SHOWN = 3 };

__device__ __forceinline__ Statistics of_part(const float4& part, int count) {
    return {(float)count, part.x, part.y, part.z, part.w};
}

// Merges the statistics of all lanes; the first lane has the result.
__device__ __forceinline__ Statistics merged_lanes(Statistics mine) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
        Statistics theirs;
        theirs.count = __shfl_xor_sync(0xffffffffu, mine.count, other);
        theirs.mean = __shfl_xor_sync(0xffffffffu, mine.mean, other);
        theirs.m2 = __shfl_xor_sync(0xffffffffu, mine.m2, other);
        theirs.least = __shfl_xor_sync(0xffffffffu, mine.least, other);
        theirs.largest = __shfl_xor_sync(0xffffffffu, mine.largest, other);
        mine = merged(mine, theirs);
    }
    return mine;
}

extern "C" __global__ void __launch_bounds__(256) tap_display(
    const T* __restrict__ x, const float4* __restrict__ channel_partials, const float4* __restrict__ slab_partials,
    const float* __restrict__ tap, unsigned* __restrict__ pixels, float* __restrict__ values,
    float4* __restrict__ statistics, unsigned* __restrict__ flags, int area, int stride, int channels, int stretches,
    int stretch, int slabs, int slab, float least, float most) {
    __shared__ Statistics totals[SHOWN + 1];
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t sample = blockIdx.y;
    if (row < SHOWN) {
        const float4* const parts = channel_partials + sample * stretches * stride + (int)tap[row];
        Statistics mine = no_statistics();
        for (int part = lane; part < stretches; part += 32)
            mine = merged(mine, of_part(parts[(size_t)part * stride], min(stretch, area - part * stretch)));
        mine = merged_lanes(mine);
        if (lane == 0) totals[row] = mine;
    } else if (row == SHOWN && blockIdx.x == 0) {
        const float4* const parts = slab_partials + sample * stretches * slabs;
        Statistics mine = no_statistics();
        for (int part = lane; part < stretches * slabs; part += 32) {
            const int rows = min(stretch, area - part / slabs * stretch);
            Statistics next = of_part(parts[part], rows);
            next.count *= (float)min(slab, channels - part % slabs * slab);
            mine = merged(mine, next);
        }
        mine = merged_lanes(mine);
        if (lane == 0) totals[row] = mine;
    }
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x <= SHOWN) {
        const Statistics mine = totals[threadIdx.x];
        const float deviation = __fsqrt_rn(__fdiv_rn(mine.m2, mine.count));
        statistics[sample * (SHOWN + 1) + threadIdx.x] = make_float4(mine.mean, deviation, mine.least, mine.largest);
        if (threadIdx.x == 0) {
            bool is_finite = true;
#pragma unroll
            for (int i = 0; i < SHOWN; ++i) is_finite &= isfinite(totals[i].least) && isfinite(totals[i].largest);
            flags[sample] = is_finite ? 0u : 1u;
        }
    }
    int place[SHOWN];
    float factor[SHOWN];
#pragma unroll
    for (int i = 0; i < SHOWN; ++i) {
        const float peak = greater(fabsf(totals[i].least), fabsf(totals[i].largest));
        place[i] = (int)tap[i];
        const float divisor = peak < least ? least : peak > most ? most : peak;
        factor[i] = __fdiv_rn(tap[SHOWN], tap[SHOWN + 1] == 0.0f ? 1.0f : divisor);
    }
    for (int pixel = blockIdx.x * 256 + threadIdx.x; pixel < area; pixel += gridDim.x * 256) {
        const size_t to = sample * area + pixel;
        unsigned word = 255u << 24;
#pragma unroll
        for (int i = 0; i < SHOWN; ++i) {
            float v[1];
            load_many<1>(x + to * stride + place[i], v);
            if (i == 0) values[to] = v[0];
            word |= to_byte(__fmul_rn(v[0], factor[i])) << (16 - 8 * i);
        }
        pixels[to] = word;
    }
}
