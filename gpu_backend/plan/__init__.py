"""Frozen execution plans, their builders, and the interface that executors implement.

Device-independent helpers are here too: the cache of bound plans, and the input arrays for noise and taps.
"""
