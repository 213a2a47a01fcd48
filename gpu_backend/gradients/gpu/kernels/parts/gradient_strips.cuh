// Which pixels a thread filters: four channels of STRIP_ROWS rows of STRIP pixels. A block has 64 channels of 4 x 4 such strips, so that what
// neighbours read twice is in the first-level cache. Macros: THREADS, 256; STRIP_ROWS. Grid: groups of channels, then strips of a row, then rows.
#pragma once

#define STRIP 4
#define QUADS_OF_BLOCK 16
#define STRIPS_OF_BLOCK 4  // along rows, and along columns

struct Strip {
    bool is_there;
    int channel, row, column;
};

__device__ __forceinline__ Strip own_strip(int side, int channels) {
    const int quads = channels >> 2, strips = (side + STRIP - 1) / STRIP;
    const int groups = (quads + QUADS_OF_BLOCK - 1) / QUADS_OF_BLOCK, across = (strips + STRIPS_OF_BLOCK - 1) / STRIPS_OF_BLOCK;
    const int index = threadIdx.x, block = blockIdx.x / groups;
    const int quad = blockIdx.x % groups * QUADS_OF_BLOCK + index % QUADS_OF_BLOCK;
    const int strip = block % across * STRIPS_OF_BLOCK + index / QUADS_OF_BLOCK % STRIPS_OF_BLOCK;
    const int row = (block / across * STRIPS_OF_BLOCK + index / (QUADS_OF_BLOCK * STRIPS_OF_BLOCK)) * STRIP_ROWS;
    return {quad < quads && strip < strips && row < side, 4 * quad, row, strip * STRIP};
}
