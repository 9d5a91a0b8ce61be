"""huge_pages: large CPU tensors in pages of 2 MiB."""
