"""Parity on real programs: harmless changes that must pass, broken ones that must not."""
