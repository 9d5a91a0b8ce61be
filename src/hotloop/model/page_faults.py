"""What page faults take of a step: an allocator that keeps buffers, and huge pages, save these and little else."""

from __future__ import annotations

from hotloop.model.observation import Observation

SHORTEST_FAULT_S, FAULT_S, LONGEST_FAULT_S = 0.5e-6, 2e-6, 5e-6
"""A minor page fault, its page cleared: 2.7 us in a virtual machine (a volumetric net: 47,000 a second, 13% of a core),
0.5 us and less on metal."""
MAX_SHARE = 0.5


def faulting(observation: Observation, fault_s: float = FAULT_S) -> float | None:
    """Return the share of the step that page faults take, 0 to 1; None: they were not counted.

    Args:
        observation: with a step.
        fault_s: of one fault, in seconds.
    """
    parts = [
        rank.page_faults * fault_s / rank.step.median_s
        for rank in observation.ranks
        if rank.page_faults is not None and rank.step is not None
    ]
    return min(max(parts), MAX_SHARE) if parts else None
