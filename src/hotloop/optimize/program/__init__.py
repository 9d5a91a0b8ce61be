"""What several optimizations ask of a program: bounds on the gain, cores, threads, nested containers."""
