"""How many cores each training process has to itself."""

from __future__ import annotations

from hotloop.model.observation import Observation


def num_cores(observation: Observation) -> int:
    """Return the cores of the machine that the program may use."""
    known = observation.machine.get("num_cores")
    if isinstance(known, int) and known > 0:
        return known
    from hotloop.machine.host import identity

    return identity.num_cores()


def num_processes(observation: Observation) -> int:
    """Return how many processes train at once on this machine."""
    training = sum(1 for rank in observation.ranks if rank.role == "train")
    return max(1, training, observation.program.world_size)


def cores_per_process(observation: Observation) -> int:
    """Return the cores of one training process, at least 1."""
    return max(1, num_cores(observation) // num_processes(observation))
