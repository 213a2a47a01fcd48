"""Latents: seeds to z, blending, truncation, mixing, directions and paths, in plain NumPy.

Nothing here depends on a model file or a device. Functions that need the mapping network take it as a callable.
"""
