"""Operations: one file for each, with its parameters, its shape rule and its cost. Nothing here launches kernels.

`gpu_backend/reference/<stem>.py` has the same operation in plain torch; executors have their own fast
implementations. Activations are channels-last: (batch, height, width, channels) float32.
"""
