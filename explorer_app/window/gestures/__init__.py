"""What a pointer and the keys do on the seed plane and on the picture."""
