"""What a timeline does: easing, evaluation at a time, edits, recorded curves. Pure functions of `session.tracks`."""
