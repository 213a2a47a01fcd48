"""The strip of messages below the canvas."""
