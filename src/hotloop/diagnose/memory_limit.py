"""How much memory there is where a program trains, and when it counts as full."""

from __future__ import annotations

from hotloop.model.observation import Observation

FULL = 0.9
"""earlyoom, the out-of-memory daemon that several distributions ship, acts when 10% of memory is left."""


def memory_limit(observation: Observation) -> int | None:
    """Return the memory of the machine, or of the smallest accelerator that the program uses; None: not known.

    Of accelerators that told nothing of themselves, the machine's smallest counts.
    """
    machine = observation.machine
    if observation.memory.device == "cpu":
        known = machine.get("memory_bytes")
        return known if isinstance(known, int) else None
    if observation.memory.devices:
        return min(device.total_bytes for device in observation.memory.devices)
    sizes = [one.get("memory_bytes") for one in machine.get("accelerators") or () if isinstance(one, dict)]
    return min((size for size in sizes if isinstance(size, int)), default=None)
