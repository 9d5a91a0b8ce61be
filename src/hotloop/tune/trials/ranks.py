"""What arms of several processes need: ports of their own, and communication that survives being frozen.

NCCL's process group watches itself. Its watchdog looks every 100 ms for works that have ended and takes those that have
not for hung after the group's timeout (10 minutes); a monitor ends the process when the watchdog has shown no heartbeat
for 8 minutes (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp). A frozen process sees that time go by at once.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping

from hotloop.launch.environment import in_own_network

REAP_S = 0.15
"""At a boundary all works have ended; after one more look of the watchdog none is left that could seem to have hung."""
_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|another process is utilizing it")
"""The last are accelerate's words."""


def of_ranks(environment: Mapping[str, str], *, own_network: bool) -> dict[str, str]:
    """Return variables for an arm's processes.

    Args:
        environment: the user's.
        own_network: the arm has a network of its own, where every port is free; else it gets a port that is.
    """
    # Frozen time is not hung time: nothing of the training's speed depends on the monitor.
    found = {"TORCH_NCCL_ENABLE_MONITORING": "0", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "86400"}
    if own_network:
        return in_own_network(found)
    port = str(_free_port())
    # torchrun takes its options from PET_...; what the command line says goes first.
    found["PET_MASTER_PORT"] = port
    if "MASTER_PORT" in environment:
        found["MASTER_PORT"] = port
    return found


def port_is_taken(log_end: str) -> bool:
    """Whether a program ended because its port was another's: it is fixed in the program, where no variable reaches."""
    return _TAKEN.search(log_end) is not None


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("", 0))
        return int(asked.getsockname()[1])
