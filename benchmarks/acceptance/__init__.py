"""Acceptance: hotloop's figures beside the truth taken another way, on a GPU or on a CPU (see docs/gpu.md)."""
