"""The GPU executor: kernels compiled by NVRTC, a plan as one captured graph. The only package that speaks to the driver."""
