"""Where frames go: one module a kind of place. `frame_sink.py` is the interface, `png_folder.py` the first of them."""
