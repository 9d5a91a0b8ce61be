"""pad_to_multiple: batches are padded to a multiple of 8, 16 or 64."""
