"""The mathematics of every operation in plain, differentiable torch, float32: the oracle for executors and kernels.

One file an operation, of the same stem as in `gpu_backend.ops`; `mapping.py`, `synthesis.py`, `stylegan1.py` and
`stylegan3.py` compose them into whole networks. Tensors are (batch, channels, height, width) as in the papers. No
function here is fast, none keeps state.
"""
