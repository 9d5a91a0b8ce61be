"""The activation of allocator_settings: looks at the segments of the CUDA allocator."""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation

MIB = 1 << 20


class ExpandableSegments(Activation):
    """Looks whether the allocator's segments can grow; the environment is what changes them."""

    def effect(self) -> tuple[bool, str]:
        """Return whether an expandable segment is there, with what is reserved beside what is in use."""
        import torch

        if not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return False, "the process uses no CUDA device"
        return told(torch.cuda.memory_snapshot(), torch.cuda.memory_stats())


def told(segments: Any, stats: Any) -> tuple[bool, str]:
    """Return whether segments can grow, and what the allocator holds.

    Args:
        segments: of `torch.cuda.memory_snapshot`.
        stats: of `torch.cuda.memory_stats`.
    """
    growing = [each for each in segments if each.get("is_expandable")]
    reserved, used = (stats.get(f"{name}_bytes.all.peak", 0) / MIB for name in ("reserved", "allocated"))
    retries = stats.get("num_alloc_retries", 0)
    held = f"at most {reserved:.0f} MiB reserved for {used:.0f} MiB in use, {retries} retries"
    return bool(growing), f"{len(growing)} of {len(segments)} segments are expandable; {held}"
