"""allocator_settings: the CUDA allocator with segments that grow."""
