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
__device__ __forceinline__ void accumulate_wgmma(Sums& sum, const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
    const unsigned matrix = matrix_descriptor(weights + warp_n * WARP_CHANNELS * ROW_NBYTES);
    unsigned a[TURNS][4][4];
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
#pragma unroll
        for (int m = 0; m < MF; ++m) {
            const int turn = (k * MF + m) % TURNS;
            // Short of registers, addresses are computed again in each step, and the fourth neighbour takes the registers of the first.
            const int pixel = SHORT_OF_REGISTERS ? opaque(pixels[m]) : pixels[m];
#pragma unroll
            for (int i = 0; i < 4 - SHORT_OF_REGISTERS; ++i) load_positions(a[turn][i], patch, pixel - (i >> 1) * PITCH - (i & 1), k * 2 + a_half);
            wgmma_fence();
#pragma unroll
            for (int p = 0; p < 9; ++p) {
                if constexpr (SHORT_OF_REGISTERS) {
                    if (p == 8) {
                        wgmma_commit();
                        wgmma_wait<0>();
                        load_positions(a[turn][0], patch, pixel - PITCH - 1, k * 2 + a_half);
                        wgmma_fence();
                    }
                }
                const int neighbour = SHORT_OF_REGISTERS ? neighbour_of(p) % 3 : neighbour_of(p);
                wgmma<WARP_CHANNELS>(sum[phase_of(p)][m], a[turn][neighbour], matrix + (tap_of(p) * CHANNELS * ROW_NBYTES + k * 32 >> 4));
            }
            wgmma_commit();
            wgmma_wait<TURNS - 1>();
        }
    }
    wgmma_wait<0>();
}

__device__ __forceinline__ void accumulate_mma(Sums& sum, const int (&pixels)[MF], unsigned patch, unsigned weights, int warp_n, int lane) {
    const int a_half = lane >> 4;
    const int b_row = warp_n * WARP_CHANNELS + (lane & 7) + (lane >> 4) * 8, b_half = lane >> 3 & 1;
#pragma unroll
    for (int k = 0; k < PRODUCTS; ++k) {
        unsigned a[MF][4][4];
#pragma unroll
        for (int m = 0; m < MF; ++m) {
#pragma unroll
            for (int i = 0; i < 4; ++i) load_positions(a[m][i], patch, pixels[m] - (i >> 1) * PITCH - (i & 1), k * 2 + a_half);
        }
#pragma unroll
        for (int p = 0; p < 9; ++p) {
#pragma unroll
            for (int n = 0; n < NF; n += 2) {
                unsigned b[4];
                const int row = b_row + n * 8;
                ldmatrix_x4(b, weights + (tap_of(p) * CHANNELS + row) * ROW_NBYTES + swizzle(k * 2 + b_half, row) * 16);
#pragma unroll
                for (int m = 0; m < MF; ++m) {
                    mma_step(sum[phase_of(p)][m] + n * 4, a[m][neighbour_of(p)], b[0], b[1]);
                    mma_step(sum[phase_of(p)][m] + n * 4 + 4, a[m][neighbour_of(p)], b[2], b[3]);
                }
            }
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
