"""Latents: seeds to z, blending, truncation, mixing, directions and paths, in plain NumPy.

Nothing here knows a model file or a device. What needs the mapping network takes a function that maps.
"""
