"""Makes a model: pictures to train on, the trainer, and what measures it. torch on any device."""
