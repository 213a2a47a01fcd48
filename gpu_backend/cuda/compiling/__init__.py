"""Kernels from source to machine code, kept on disk, loaded once."""
