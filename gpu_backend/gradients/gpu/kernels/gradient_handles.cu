// The handles' part of a drag's loss: unit * sum over the points q of a patch and channels of |F(position + q) - template(q)|. Adds its gradient,
// `level` where the loss has `unit`, to that of the features in fp16. `used` of the channels are no padding. Differences within `slack` are
// rounding, and have no gradient: Adam would make a whole step of it.
//
// Then it judges the features and moves each handle, as gpu_backend/gradients/motion.py does: the template adapts, the position hops on, stays or
// goes back. One block a handle.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_handle.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define CANDIDATES 16
#define SHARES 2  // warps of a candidate
#define WARPS (CANDIDATES * SHARES)
#define THREADS (32 * WARPS)
#define EXPECTED 0.6f
#define REACHED (0.5f * EXPECTED)
#define PATIENCE 4.0f
#define LONGEST_HOP 2.0f
#define ARRIVED 1e-3f

// The sum over all threads, in every thread.
__device__ __forceinline__ float block_total(float sum, float* warps) {
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    return warp_total(warps[threadIdx.x & 31]);
}

// Where a point of a patch is.
__device__ __forceinline__ Corners corners_of_point(float2 centre, int point, int radius, int side, int channels) {
    const int across = 2 * radius + 1;
    return corners_of(centre.x + (float)(point % across - radius), centre.y + (float)(point / across - radius), side, channels);
}

// Differences from the template at the places start + share_k * way, SHARES warps a place; into `found`.
__device__ __forceinline__ void differences_at(
    const half_bits* features, const float* wanted, float2 start, float2 way, float2 shares, int side, int channels,
    int used, int radius, float unit, float* warps, float* found) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, across = 2 * radius + 1;
    const float share = shares.x + shares.y * (float)(warp / SHARES);
    const float2 centre = make_float2(start.x + share * way.x, start.y + share * way.y);
    float sum = 0.0f;
    for (int point = warp % SHARES; point < across * across; point += SHARES) {
        const Corners at = corners_of_point(centre, point, radius, side, channels);
#pragma unroll 2
        for (int channel = lane * SAMPLED; channel < used; channel += 32 * SAMPLED) {
            float v[SAMPLED];
            difference_from(features, at, wanted + (size_t)point * channels, channel, used, v);
#pragma unroll
            for (int k = 0; k < SAMPLED; ++k) sum += fabsf(v[k]);
        }
    }
    sum = warp_total(sum);
    __syncthreads();  // the warps' numbers are free
    if (lane == 0) warps[warp] = sum * unit;
    __syncthreads();
    if (threadIdx.x < CANDIDATES) {
        sum = 0.0f;
        for (int i = 0; i < SHARES; ++i) sum += warps[threadIdx.x * SHARES + i];
        found[threadIdx.x] = sum;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) gradient_handles(
    const half_bits* __restrict__ features, float* __restrict__ states, float* __restrict__ templates,
    half_bits* __restrict__ gradient, int side, int channels, int used, int radius, float unit, float level, float slack) {
    __shared__ float found[CANDIDATES];
    __shared__ float warps[WARPS];
    wait_for_previous_kernel();
    float* state = states + blockIdx.x * HANDLE_FLOATS;
    if (state[PULLS] == 0.0f) return;
    const int points = (2 * radius + 1) * (2 * radius + 1), warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    float* wanted = templates + (size_t)blockIdx.x * points * channels;
    float2 position = make_float2(state[POSITION], state[POSITION + 1]);
    const float2 target = make_float2(state[TARGET], state[TARGET + 1]);
    const float2 trail = make_float2(state[TRAIL], state[TRAIL + 1]);
    float first = state[FIRST], steps = state[STEPS], rested = state[RESTED];
    float sum = 0.0f;
    for (int point = warp; point < points; point += WARPS) {
        const Corners at = corners_of_point(position, point, radius, side, channels);
#pragma unroll 2
        for (int channel = lane * SAMPLED; channel < used; channel += 32 * SAMPLED) {
            float v[SAMPLED];
            difference_from(features, at, wanted + (size_t)point * channels, channel, used, v);
#pragma unroll
            for (int k = 0; k < SAMPLED; ++k) {
                sum += fabsf(v[k]);
                v[k] = v[k] > slack ? level : v[k] < -slack ? -level : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (at.weight[i] != 0.0f) {
                    half_bits* to = gradient + at.place[i] + channel;
#pragma unroll
                    for (int k = 0; k < SAMPLED; k += 2) add_to_halves(to + k, v[k] * at.weight[i], v[k + 1] * at.weight[i]);
                }
        }
    }
    const float difference = block_total(sum, warps) * unit;

    const float2 way = make_float2(target.x - position.x, target.y - position.y);
    const float length = sqrtf(way.x * way.x + way.y * way.y);
    rested = length < ARRIVED ? rested + 1.0f : 0.0f;
    const bool is_reached = difference <= REACHED, is_done = rested > 0.0f && is_reached;
    bool adapts = false, hops = false, returns = false;
    if (!is_done) {
        steps += 1.0f;
        if (steps == 1.0f) first = difference;
        if (is_reached) {
            adapts = true, hops = length >= ARRIVED, steps = 0.0f;
        } else if (steps >= PATIENCE) {
            returns = difference > first, adapts = !returns, steps = 0.0f;
        }
    }
    if (adapts) {
        const float share = 0.5f / (1.0f + expf(8.0f * difference / EXPECTED - 2.0f));
        for (int point = warp; point < points; point += WARPS) {
            const Corners at = corners_of_point(position, point, radius, side, channels);
            for (int channel = lane * SAMPLED; channel < used; channel += 32 * SAMPLED) {
                float* to = wanted + (size_t)point * channels;
                float v[SAMPLED], next[SAMPLED];
                difference_from(features, at, to, channel, used, v);
                load_many(to + channel, next);
#pragma unroll
                for (int k = 0; k < SAMPLED; ++k) next[k] = fmaf(share, v[k], next[k]);
                store_many(to + channel, next);
            }
        }
        __syncthreads();
    }
    float2 begun = trail;
    if (hops) {
        const float longest = fminf(length, LONGEST_HOP), part = longest / length / (float)CANDIDATES;
        differences_at(features, wanted, position, way, make_float2(part, part), side, channels, used, radius, unit, warps, found);
        int chosen = CANDIDATES - 1;
        for (int k = CANDIDATES - 1; k >= 0; --k)
            if (found[k] >= EXPECTED) chosen = k;
        begun = position;
        const float share = part * (float)(chosen + 1);
        position = chosen == CANDIDATES - 1 && longest == length
                       ? target
                       : make_float2(position.x + share * way.x, position.y + share * way.y);
    } else if (returns) {
        const float2 back = make_float2(position.x - trail.x, position.y - trail.y);
        const float part = 1.0f / (float)(CANDIDATES - 1);
        differences_at(features, wanted, trail, back, make_float2(0.0f, part), side, channels, used, radius, unit, warps, found);
        int chosen = 0;
        for (int k = 1; k < CANDIDATES; ++k)
            if (found[k] < found[chosen]) chosen = k;
        position = make_float2(trail.x + part * (float)chosen * back.x, trail.y + part * (float)chosen * back.y);
    }
    if (threadIdx.x == 0) {
        state[POSITION] = position.x, state[POSITION + 1] = position.y;
        state[TRAIL] = begun.x, state[TRAIL + 1] = begun.y;
        state[DIFFERENCE] = difference, state[FIRST] = first, state[STEPS] = steps, state[RESTED] = rested;
    }
}
