"""The performance panel: figures, frame times, steps."""
