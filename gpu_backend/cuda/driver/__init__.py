"""GPUs as the rest of the program sees them: which there are, their memory, how kernels are launched."""
