"""The picture alone on another screen, for a stage or a wall."""
