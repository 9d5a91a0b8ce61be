"""Which rank of a process group this process is."""

from __future__ import annotations

import os
import sys


def rank_and_world() -> tuple[int | None, int]:
    """Return this process's rank and the number of ranks; (None, 1) where it is no rank.

    The process group knows, once there is one: `mp.spawn` sets no environment. Before that, what launchers set.
    """
    torch = sys.modules.get("torch")
    distributed = torch.distributed if torch is not None else None
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank = os.environ.get("RANK", "")
    world = os.environ.get("WORLD_SIZE", "")
    return (int(rank) if rank.isdigit() else None, int(world) if world.isdigit() else 1)


def number_on_machine() -> int:
    """Return a number that no other rank of this machine has; 0 where this process is no rank.

    Launchers say which; ranks that the program starts by itself have that of the group.
    """
    local = os.environ.get("LOCAL_RANK", "")
    return int(local) if local.isdigit() else rank_and_world()[0] or 0
