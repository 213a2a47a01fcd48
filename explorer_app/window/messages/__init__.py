"""Toasts: where messages reach the person."""
