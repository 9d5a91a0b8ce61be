"""optimizer_memory: the optimizer with fewer temporaries, or with state in 8 bits."""
