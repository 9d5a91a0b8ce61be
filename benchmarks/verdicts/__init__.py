"""Error rates of verdicts, screening and parity."""
