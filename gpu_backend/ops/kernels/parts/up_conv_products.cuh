// The products of a pipeline step of modulated_up_conv.cu: nine a position, for the four phases of t, on tensor cores.
// Constants of the kernel: MF, NF, TURNS, SHORT_OF_REGISTERS, POSITIONS, M_COLUMNS, PITCH, WARP_CHANNELS.
#pragma once
#include "parts/tile_loop.cuh"

// The nine products of a position: which of four neighbours (2 * (row before) + (column before)), which tap of the kernel
// (3 * ky + kx), and which phase of t (2 * row + column).
__device__ __forceinline__ constexpr int neighbour_of(int product) { return product < 4 ? 0 : product < 6 ? 2 : product < 8 ? 1 : 3; }
__device__ __forceinline__ constexpr int tap_of(int product) {
    return product == 0 ? 0 : product == 1 ? 1 : product == 2 ? 3 : product == 3 ? 4 : product == 4 ? 6 : product == 5 ? 7
         : product == 6 ? 2 : product == 7 ? 5 : 8;
}
__device__ __forceinline__ constexpr int phase_of(int product) { return product < 4 ? product : product == 5 ? 1 : product == 7 ? 2 : 0; }

typedef float Sums[4][MF][NF * 4];  // of a thread: phase, fragment of positions, numbers of fragments of channels

// Pixels of the patch that the lane addresses in each fragment of positions, as ldmatrix wants them.
__device__ __forceinline__ void find_pixels(int (&pixels)[MF], int warp_m, int lane) {
#pragma unroll
    for (int m = 0; m < MF; ++m) {
        const int position = min((warp_m * MF + m) * 16 + (lane & 15), POSITIONS - 1);
        pixels[m] = (position / M_COLUMNS + 1) * PITCH + position % M_COLUMNS + 1;
    }
}

// sum += products of a step: `patch` and `weights` are those of its stage. `pixels` as find_pixels returns them.
// With BF16X3 the products of a phase are a chain of their own (add_chain), since the sums of all phases twice would be too many registers.
__device__ __forceinline__ void accumulate_wgmma(Sums& sum, const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
    const unsigned matrix = matrix_descriptor(weights + warp_n * WARP_CHANNELS * ROW_NBYTES);
    auto weights_of = [&](int product, int k) { return matrix + (tap_of(product) * CHANNELS * ROW_NBYTES + k * PRODUCT_NBYTES >> 4); };
    Fragment a[TURNS][4];
    float chains[2][NF * 4];  // of two phases: while one is added to its sum, the other is multiplied
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
        for (int m = 0; m < MF; ++m) {
            const int turn = (k * MF + m) % TURNS;
            // Short of registers, addresses are computed again in each step, and the fourth neighbour takes the registers of the first.
            const int pixel = SHORT_OF_REGISTERS ? opaque(pixels[m]) : pixels[m];
#pragma unroll
            for (int i = 0; i < 4 - SHORT_OF_REGISTERS; ++i) load_positions(a[turn][i], patch, pixel - (i >> 1) * PITCH - (i & 1), k, a_half);
            if constexpr (BF16X3) {
#pragma unroll
                for (int phase = 0; phase < 4; ++phase) {
                    float (&chain)[NF * 4] = chains[phase % 2];
#pragma unroll
                    for (int i = 0; i < NF * 4; ++i) chain[i] = 0.0f;
                    wgmma_fence();
#pragma unroll
                    for (int p = 0; p < 9; ++p) {
                        if (phase_of(p) == phase) wgmma_step<WARP_CHANNELS>(chain, a[turn][neighbour_of(p)], weights_of(p, k));
                    }
                    wgmma_commit();
                    if (phase > 0) {
                        wgmma_wait<1>();
                        add_chain<NF * 4>(sum[phase - 1][m], chains[1 - phase % 2]);
                    }
                }
                wgmma_wait<0>();
                add_chain<NF * 4>(sum[3][m], chains[1]);
                continue;
            }
            wgmma_fence();
#pragma unroll
            for (int p = 0; p < 9; ++p) {
                if constexpr (SHORT_OF_REGISTERS) {
                    if (p == 8) {
                        wgmma_commit();
                        wgmma_wait<0>();
                        load_positions(a[turn][0], patch, pixel - PITCH - 1, k, a_half);
                        wgmma_fence();
                    }
                }
                const int neighbour = SHORT_OF_REGISTERS ? neighbour_of(p) % 3 : neighbour_of(p);
                wgmma_step<WARP_CHANNELS>(sum[phase_of(p)][m], a[turn][neighbour], weights_of(p, k));
            }
            wgmma_commit();
            wgmma_wait<TURNS - 1>();
        }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int phase = 0; phase < 4; ++phase) {
#pragma unroll
        for (int m = 0; m < MF; ++m) wgmma_fence_sums(sum[phase][m]);
    }
}

// sum += one of the nine products, of the positions whose neighbours `a` holds.
__device__ __forceinline__ void mma_product(float (&sum)[MF][NF * 4], const Fragment (&a)[MF][4], unsigned weights, int product, int k, int lane, int warp_n) {
    const int row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, half = lane >> 3 & 1;
#pragma unroll
    for (int n = 0; n < NF; n += 2) {
        Fragment b;
        load_weights(b, weights, tap_of(product), row + n * 8, k, half);
#pragma unroll
        for (int m = 0; m < MF; ++m) {
            mma_step(sum[m] + n * 4, a[m][neighbour_of(product)], b, 0);
            mma_step(sum[m] + n * 4 + 4, a[m][neighbour_of(product)], b, 1);
        }
    }
}

__device__ __forceinline__ void accumulate_mma(Sums& sum, const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
        Fragment a[MF][4];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) load_positions(a[m][i], patch, pixels[m] - (i >> 1) * PITCH - (i & 1), k, a_half);
        }
        if constexpr (BF16X3) {
#pragma unroll
            for (int phase = 0; phase < 4; ++phase) {
                float chains[MF][NF * 4] = {};
#pragma unroll
                for (int p = 0; p < 9; ++p) {
                    if (phase_of(p) == phase) mma_product(chains, a, weights, p, k, lane, warp_n);
                }
                add_chain<MF * NF * 4>(&sum[phase][0][0], &chains[0][0]);
            }
            continue;
        }
#pragma unroll
        for (int p = 0; p < 9; ++p) {
            mma_product(sum[phase_of(p)], a, weights, p, k, lane, warp_n);
        }
    }
}

__device__ __forceinline__ void accumulate(Sums& sum, const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    if constexpr (USE_WGMMA) {
        accumulate_wgmma(sum, pixels, patch, weights, warp_n, lane);
    } else {
        accumulate_mma(sum, pixels, patch, weights, warp_n, lane);
    }
}
