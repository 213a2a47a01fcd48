"""The GPU executor: kernels compiled by NVRTC, a plan as one captured graph. Only this package speaks to the driver."""
