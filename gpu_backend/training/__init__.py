"""Training: data sets, the trainer, and quality metrics, in torch on any device."""
