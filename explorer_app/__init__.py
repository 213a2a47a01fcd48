"""Latent Loom: what the user sees and does. Start reading at `app.py`."""

import os

# NumPy's work here takes milliseconds on one thread; OpenBLAS's own threads spin while they wait for each other, and
# take cores from the threads that render. OpenBLAS reads the variable when it is loaded; what the user set stays.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
