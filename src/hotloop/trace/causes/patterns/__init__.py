"""Slow habits that a trace shows, as findings: one pattern is one function beside its kin."""

from hotloop.trace.causes.patterns.idle_pattern import Pattern, Seen
from hotloop.trace.causes.patterns.registry import find_patterns

__all__ = ["Pattern", "Seen", "find_patterns"]
