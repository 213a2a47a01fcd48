"""Named directions in w for any model: from factors of pictures, PCA of w, or SeFa by rows."""
