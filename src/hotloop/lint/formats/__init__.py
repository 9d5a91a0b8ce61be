"""Findings as text, JSON, SARIF and GitHub annotations; for static and dynamic findings alike."""
