// The end of a StyleGAN1 layer, gpu_backend/ops/adain.py, four channels of a pixel a thread; adain.cu has the formula.
// It is the fp32 mode, what stands in for the fused kernel, and what that is compared with.
//
// Macros: HALF, ACTIVATION, BLURS_BIAS. Arguments: as in adain.cu. Grid: 256 quads of channels a block; pictures.
// part: adain

extern "C" __global__ void __launch_bounds__(256) plain_adain(
    const T* __restrict__ x, T* __restrict__ y, const float* __restrict__ affine, const float* __restrict__ bias,
    const float* __restrict__ strength, const float* __restrict__ noise, const float* __restrict__ noise_gain,
    const unsigned* __restrict__ noise_source, int noise_layer, int is_shared, int side, int cout, float gain,
    float clamp) {
    const size_t area = (size_t)side * side, quad = (size_t)blockIdx.x * 256 + threadIdx.x, sample = blockIdx.y;
    const int quads = cout / 4;
    if (quad >= area * quads) return;
    const int pixel = quad / quads, channel = quad % quads * 4;
    float v[4], biases[4], strengths[4], mean[4], factor[4], shift[4];
    load_many<4>(x + ((is_shared ? 0 : sample) * area + pixel) * cout + channel, v);
    load_table<4>(bias, channel, true, biases);
    load_table<4>(strength, channel, true, strengths);
    const float value = layer_noise(noise, noise_gain, noise_source, noise_layer, pixel);
    finish_before_normal<4>(v, biases, strengths, value, bias_share(pixel, side), gain, clamp);
    const float* const own = affine + sample * 3 * cout + channel;
    load_many<4>(own, mean);
    load_many<4>(own + cout, factor);
    load_many<4>(own + 2 * cout, shift);
#pragma unroll
    for (int e = 0; e < 4; ++e) v[e] = fmaf(v[e] - mean[e], factor[e], shift[e]);
    store_many<4>(y + (sample * area + pixel) * cout + channel, v);
}
