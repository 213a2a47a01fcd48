"""What to do, decided before doing it: frozen plans, their builders, and the interface that executors keep.

Beside them, whatever the device: a shelf of the plans that stand ready, and the arrays that the noise inputs get.
"""
