"""The panel of controllers: inputs, and what moves what."""
