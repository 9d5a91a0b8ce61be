"""cpu_affinity: threads, loader workers and ranks on processors of their own."""
