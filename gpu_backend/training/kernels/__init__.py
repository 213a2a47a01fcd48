"""The trainer's own kernels, on tensors with channels last: passes around convolutions, and the filter.

Each has a plain counterpart in `gpu_backend.training.networks`, which defines what it computes and takes its place.
"""
