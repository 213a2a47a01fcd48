"""What a training step takes, from a textbook's implementation to ours, one optimisation after the other."""
