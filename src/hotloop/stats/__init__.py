"""Pure functions on measured numbers: summaries, ratio intervals, verdicts, parity."""
