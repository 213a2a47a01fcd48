"""The picture: canvas, caption, overlay, frame of the transform, comparisons."""
