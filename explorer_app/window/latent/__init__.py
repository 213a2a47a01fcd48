"""The latent panel: seed plane, truncation, noise, class."""
