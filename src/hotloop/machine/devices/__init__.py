"""Accelerators, asked of their drivers through one vocabulary for NVIDIA and AMD; torch is never imported."""
