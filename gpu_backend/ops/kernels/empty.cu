// Does nothing. Used to measure the cost of an event (gpu_backend/cuda/timing/kernel_timer.py).
extern "C" __global__ void empty() {}
