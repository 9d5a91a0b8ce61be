"""Search, trials, parity and budget."""
