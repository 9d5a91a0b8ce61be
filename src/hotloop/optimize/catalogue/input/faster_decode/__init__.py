"""faster_decode: the same JPEG bytes through a faster decoder."""
