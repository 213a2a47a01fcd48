"""One file an operation: its settings as frozen data, its shape rule, and what it costs. Nothing here launches it.

`gpu_backend/reference/<stem>.py` holds the mathematics of the same stem in plain torch; executors bring their own way
to do it fast. Activations are channels-last: (batch, height, width, channels) float32.
"""
