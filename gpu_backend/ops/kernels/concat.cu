// Rows of two arrays side by side, in fp32: (batch, first_width) and (batch, second_width) to (batch, both).
// A block copies a part of one row: grid = (both / THREADS, rounded up, batch).
enum : int { THREADS = 256 };

extern "C" __global__ void __launch_bounds__(THREADS) concat(
    const float* first, const float* second, float* joined, int first_width, int second_width) {
    const int width = first_width + second_width, column = blockIdx.x * THREADS + threadIdx.x;
    const size_t row = blockIdx.y;
    if (column >= width) return;
    joined[row * width + column] = column < first_width ? first[row * first_width + column]
                                                        : second[row * second_width + column - first_width];
}
