"""cpu_allocator: large buffers are kept by the allocator instead of given back and faulted in again."""
