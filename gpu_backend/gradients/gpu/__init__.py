"""Gradients on a GPU by this project's own kernels: drags, and the passes of searches for a picture.

`weights` packs a network's arrays, `network` runs it forward and backward. `drag` adds the loss, the handles and Adam
in one CUDA graph without torch. `passes` and `terms` are differentiated by torch, on its stream. The kernels are
`gradient_*.cu` of `kernels`.
"""
