// Does nothing: what an event costs is measured with it (gpu_backend/cuda/timing/kernel_timer.py).
extern "C" __global__ void empty() {}
