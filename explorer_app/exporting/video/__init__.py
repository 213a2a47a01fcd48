"""Videos and animations: segments of encoded frames, and their joining into one file without encoding again."""
