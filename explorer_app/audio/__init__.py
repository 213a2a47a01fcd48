"""Sounds: decoding, envelopes, mixing, playback, and the synthesiser of the demo. No Qt, no torch."""
