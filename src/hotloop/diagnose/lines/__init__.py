"""Which line of the user's source a cost belongs to: call sites, samples, and the source read by `ast`."""
