"""A GPU that is not there: the user's program runs on it unmodified, and every allocation is known.

Tensors on the device are torch's fake tensors: they have shapes, types and a graph, and no memory. What is allocated,
when, by which module and line, and what the caching allocator makes of it, comes out as numbers of bytes.
Tensors on the CPU stay real, so that samplers, data sets and tokenizers work.
"""
