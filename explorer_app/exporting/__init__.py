"""Frames to files: pictures that carry their recipe, and sequences that can be stopped at any moment and go on.

The way of a sequence::

    SequenceSettings        what the person asked for                                        sequence.py
    Sequence                each frame's request and file, decided before the first is rendered
    SequenceJob             hands out requests, takes frames, knows what is already there     job.py
    WriterPool              encodes and writes beside the render thread                       writers.py
    write_output            whole or not at all, a refusal told in a sentence                 output_file.py

No Qt here: the window and the command line use the same job.
"""
