// y = sum_k c[k] table[k] in fp32: labels (batch, c_dim) and a table of at least c_dim rows of `width` numbers.
// A thread computes one number of the output; rows of weight 0 are not read. grid = (width / THREADS, rounded up, batch).
enum : int { THREADS = 128 };

extern "C" __global__ void __launch_bounds__(THREADS) embedding(
    const float* c, const float* table, float* y, int c_dim, int width) {
    const int column = blockIdx.x * THREADS + threadIdx.x;
    if (column >= width) return;
    const float* label = c + (size_t)blockIdx.y * c_dim;
    float sum = 0.0f;
    for (int k = 0; k < c_dim; ++k) {
        const float weight = label[k];
        if (weight != 0.0f) sum = fmaf(weight, table[(size_t)k * width + column], sum);
    }
    y[(size_t)blockIdx.y * width + column] = sum;
}
