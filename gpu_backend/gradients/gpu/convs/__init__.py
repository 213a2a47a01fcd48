"""Convolutions of steps and their adjoints: how each kernel is launched, and which one computes a layer."""
