"""The step of a drag on a GPU by this project's own kernels: forward, loss, backward and Adam in one CUDA graph.

`weights` packs a network's arrays, `network` runs it forward and backward, `drag` adds the loss, the handles and Adam.
torch launches nothing here. The kernels are `gradient_*.cu` of `gpu_backend.ops.kernels`.
"""
