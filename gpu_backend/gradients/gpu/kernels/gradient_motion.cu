// Judges the features of a step and moves each handle, as gpu_backend/gradients/motion.py does: the template adapts, the
// position hops on, stays or goes back. One block a handle.
#define HALF 1
#include "parts/types.cuh"
#include "parts/gradient_handle.cuh"
#include "parts/gradient_table.cuh"
#include "parts/previous_kernel.cuh"

#define WARPS 16
#define THREADS (32 * WARPS)
#define CANDIDATES 16
#define EXPECTED 0.6f
#define REACHED (0.5f * EXPECTED)
#define PATIENCE 4.0f
#define LONGEST_HOP 2.0f
#define ARRIVED 1e-3f

// Differences from the template at the places start + share_k * way, one warp a place; into `found`.
__device__ __forceinline__ void differences_at(
    const half_bits* features, const float* wanted, float2 start, float2 way, float2 shares, int side, int channels,
    int used, int radius, float unit, float* found) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, across = 2 * radius + 1;
    const float share = shares.x + shares.y * (float)warp;
    float sum = 0.0f;
    for (int point = 0; point < across * across; ++point) {
        const float x = start.x + share * way.x + (float)(point % across - radius);
        const float y = start.y + share * way.y + (float)(point / across - radius);
        const Corners at = corners_of(x, y, side, channels);
#pragma unroll 4
        for (int channel = lane; channel < used; channel += 32)
            sum += fabsf(sample(features, at, channel) - wanted[(size_t)point * channels + channel]);
    }
    sum = warp_total(sum);
    if (lane == 0) found[warp] = sum * unit;
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) gradient_motion(
    const half_bits* __restrict__ features, float* __restrict__ states, float* __restrict__ templates,
    const float* __restrict__ differences, int side, int channels, int used, int radius, float unit) {
    __shared__ float found[CANDIDATES];
    __shared__ float warps[WARPS];
    wait_for_previous_kernel();
    float* state = states + blockIdx.x * HANDLE_FLOATS;
    if (state[PULLS] == 0.0f) return;
    const int across = 2 * radius + 1, points = across * across;
    float* wanted = templates + (size_t)blockIdx.x * points * channels;
    float sum = 0.0f;
    for (int point = threadIdx.x; point < points; point += THREADS) sum += differences[blockIdx.x * points + point];
    sum = warp_total(sum);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    float2 position = make_float2(state[POSITION], state[POSITION + 1]);
    const float2 target = make_float2(state[TARGET], state[TARGET + 1]);
    const float2 trail = make_float2(state[TRAIL], state[TRAIL + 1]);
    float first = state[FIRST], steps = state[STEPS], rested = state[RESTED];
    __syncthreads();
    float difference = 0.0f;
    for (int i = 0; i < WARPS; ++i) difference += warps[i];
    difference *= unit;

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
        const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
        for (int point = warp; point < points; point += WARPS) {
            const Corners at = corners_of(
                position.x + (float)(point % across - radius), position.y + (float)(point / across - radius), side, channels);
            for (int channel = lane; channel < used; channel += 32) {
                float* to = wanted + (size_t)point * channels + channel;
                *to += share * (sample(features, at, channel) - *to);
            }
        }
        __syncthreads();
    }
    float2 begun = trail;
    if (hops) {
        const float longest = fminf(length, LONGEST_HOP), part = longest / length / (float)CANDIDATES;
        differences_at(features, wanted, position, way, make_float2(part, part), side, channels, used, radius, unit, found);
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
        differences_at(features, wanted, trail, back, make_float2(0.0f, part), side, channels, used, radius, unit, found);
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
