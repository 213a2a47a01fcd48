"""The two networks of training, as torch modules: a generator with the tensors of model files, and a discriminator.

Both keep float32 weights and run in the requested precision; gradients of gradients exist everywhere.
"""
