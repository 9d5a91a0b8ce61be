"""numa_binding: processors and memory of one node, the one next to the device."""
