"""CUDA kernels of the trainer, on channels-last tensors: passes around convolutions, and the FIR filter.

Each has a plain torch counterpart in `gpu_backend.training.networks`, which is its reference and its fallback.
"""
