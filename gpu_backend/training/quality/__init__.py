"""Quality metrics without third-party weights: features of a small CNN, and distances between sets of features."""
