"""Gradients with respect to w, in torch: dragging points of a picture, and projecting pictures into w.

`network` runs a synthesis network differentiably, `drag` moves points by one of the `solvers`, `projection` finds the
rows of w of a given picture, and `tracking` follows points through pictures, apart from the features that an optimiser
uses.
"""
