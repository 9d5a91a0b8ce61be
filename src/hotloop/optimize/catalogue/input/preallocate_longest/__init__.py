"""preallocate_longest: memory for the longest batch is asked for before training."""
