"""Frames to files: pictures that carry their recipe, and sequences that can be stopped at any moment and resumed.

::

    SequenceSettings    what to export; stored in the manifest                    sequence.py, manifest.py
    SequencePlan        index -> request, random access, pure                     sequence.py, keyframes.py
    SequenceJob         hands out requests of missing frames, takes frames        job.py
    Destination         where it is written: claims the place, the manifest       destination.py
    FrameSink           where frames go: a folder of pictures, or one file        sinks/
    Encoders            encode and write pictures: threads, and processes         encoders.py, encoder_crew.py
    write_output        whole or not at all; errors are one sentence              output_file.py

No Qt here: the window and the command line use the same job.
"""
