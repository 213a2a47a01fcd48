"""Where frames go: one module a kind of place; `frame_sink.py` is the interface of all."""
