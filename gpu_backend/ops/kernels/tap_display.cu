// A layer as a picture (gpu_backend/ops/tap_display.py): its bytes, its figures, the numbers of one channel, the flag.
// Every block joins the figures of the channels that are shown, always in the same order; the first of a sample writes
// them. `figures` and `shares` are tap_statistics.cu's: `stretches` of `stretch` pixels, slabs of `slab` channels.
// `tap`: channels for R, G and B, gain, whether each channel is divided by its largest magnitude.
// What a channel is divided by is held within `least` .. `most`.
// Macro HALF. Grid: as many blocks as are wanted; samples.
// part: types
// part: figures
// part: bytes

#define SHOWN 3

__device__ __forceinline__ Figures of_part(const float4& part, int count) {
    return {(float)count, part.x, part.y, part.z, part.w};
}

// The figures of all lanes, in the first of them.
__device__ __forceinline__ Figures joined_lanes(Figures mine) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
        Figures theirs;
        theirs.count = __shfl_xor_sync(0xffffffffu, mine.count, other);
        theirs.mean = __shfl_xor_sync(0xffffffffu, mine.mean, other);
        theirs.squares = __shfl_xor_sync(0xffffffffu, mine.squares, other);
        theirs.least = __shfl_xor_sync(0xffffffffu, mine.least, other);
        theirs.largest = __shfl_xor_sync(0xffffffffu, mine.largest, other);
        mine = joined(mine, theirs);
    }
    return mine;
}

extern "C" __global__ void __launch_bounds__(256) tap_display(
    const T* __restrict__ x, const float4* __restrict__ figures, const float4* __restrict__ shares,
    const float* __restrict__ tap, unsigned* __restrict__ pixels, float* __restrict__ values,
    float4* __restrict__ statistics, unsigned* __restrict__ flags, int area, int stride, int channels, int stretches,
    int stretch, int slabs, int slab, float least, float most) {
    __shared__ Figures totals[SHOWN + 1];
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t sample = blockIdx.y;
    if (row < SHOWN) {
        const float4* const parts = figures + sample * stretches * stride + (int)tap[row];
        Figures mine = no_figures();
        for (int part = lane; part < stretches; part += 32)
            mine = joined(mine, of_part(parts[(size_t)part * stride], min(stretch, area - part * stretch)));
        mine = joined_lanes(mine);
        if (lane == 0) totals[row] = mine;
    } else if (row == SHOWN && blockIdx.x == 0) {
        const float4* const parts = shares + sample * stretches * slabs;
        Figures mine = no_figures();
        for (int part = lane; part < stretches * slabs; part += 32) {
            const int rows = min(stretch, area - part / slabs * stretch);
            Figures next = of_part(parts[part], rows);
            next.count *= (float)min(slab, channels - part % slabs * slab);
            mine = joined(mine, next);
        }
        mine = joined_lanes(mine);
        if (lane == 0) totals[row] = mine;
    }
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x <= SHOWN) {
        const Figures mine = totals[threadIdx.x];
        const float deviation = __fsqrt_rn(__fdiv_rn(mine.squares, mine.count));
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
