"""Latent Loom: what the person sees and does. Start reading at `app.py`."""
