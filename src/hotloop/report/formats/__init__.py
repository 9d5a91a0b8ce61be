"""Findings and samples in formats that other tools read: SARIF, GitHub annotations, speedscope, cProfile, JSON."""
