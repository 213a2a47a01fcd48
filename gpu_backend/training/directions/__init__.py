"""Named directions in w for any model: from factors read off pictures, from PCA of w, from SeFa by rows."""
