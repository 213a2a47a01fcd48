"""How convolutions are divided among thread blocks on a GPU: tables of tiles, and the GPU as lowering sees it."""
