"""Gradients with respect to w, in torch: dragging points of a picture, and projecting pictures into w.

`network` runs a synthesis network differentiably, `drag` and `gauss_newton` move points, `projection` finds the w rows
of a given picture, and `tracking` follows points through pictures, apart from the features that an optimiser uses.
"""
