// A fully connected layer over rows of features: y = clamp(act(x . W + b) * gain), all in fp32.
// W and b include the learning-rate factors; rows of W are padded with zeros to a multiple of 8 columns.
//
// A warp computes one output feature of BATCH rows of x, a block four; grid = (features / 4, rows / BATCH), rounded up.
// The loads of the weights are in flight before x is read.
//     ACTIVATION: see parts/activation.cuh      BATCH: 1, 2, 4 or 8
#define HALF 0
enum : int {
    ROWS = 1,
    THREADS = 128,
};
#include "parts/types.cuh"
#include "parts/activation.cuh"
#include "parts/rows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) fully_connected(
    const float* x, const uint4* __restrict__ table, const float* __restrict__ bias, float* y, int batch,
    int in_features, int out_features, int groups, float gain, float clamp) {
    extern __shared__ float4 shared[];
    float* vectors = reinterpret_cast<float*>(shared);
    const int lane = threadIdx.x & 31;
    const int feature = blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5);
    const bool has_feature = feature < out_features;
    const int first_sample = blockIdx.y * BATCH;
    const int samples = min(BATCH, batch - first_sample);

    const uint4* row = table + (size_t)feature * groups;
    uint4 words[ROWS][CHUNKS];
    load_rows(row, groups, 0, has_feature, words);
    const float b = has_feature ? bias[feature] : 0.0f;

    unsigned peak[BATCH] = {};
    stage_vectors(x + (size_t)first_sample * in_features, in_features, samples, in_features, groups, vectors, peak);
    __syncthreads();
    float sums[SUMS] = {};
    add_row_products<false>(vectors, row, groups, has_feature, words, sums);
    const float total = total_over_lanes(sums);
    if (has_feature && lane < samples)
        y[(size_t)(first_sample + lane) * out_features + feature] = bounded(activate(total + b) * gain, clamp);
}
