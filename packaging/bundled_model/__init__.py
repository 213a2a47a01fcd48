"""The bundled model, written down instead of trained: a scene of hills compiled into the weights of a StyleGAN2."""
