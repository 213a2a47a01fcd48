"""The timeline of the Animate workspace: ruler, tracks, keys, playhead."""
