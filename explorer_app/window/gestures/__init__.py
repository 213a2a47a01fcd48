"""Pointer and key gestures on the seed plane and on the picture."""
