"""What a run tried to reach in a network of its own, from the counters that the kernel keeps for each network.

Every connection is counted, whatever language made it and whatever the program says of it: those for which there is no
route (other machines) and those that nobody answers (services of this machine).
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import NamedTuple

KEPT = "network-counters"
"""A file in scratch: the counters at the end of a run."""


class Attempts(NamedTuple):
    """Connections that failed.

    Attributes:
        outside: to other machines.
        refused: to ports of this machine on which nobody listens in there.
    """

    outside: int = 0
    refused: int = 0


def read_counters(pid: int | str = "self") -> str:
    """Return the counters of the network that a process is in; empty: it has ended."""
    text = ""
    for name in ("snmp", "snmp6"):
        with contextlib.suppress(OSError):
            text += Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    return text


def keep_counters(scratch: Path) -> None:
    """Write the counters of this process's network into scratch, at the end of a run."""
    with contextlib.suppress(OSError):
        (scratch / KEPT).write_text(read_counters(), encoding="ascii")


def attempts(pid: int, scratch: Path) -> Attempts:
    """Return what a run tried in vain, while it lives or after its end.

    Args:
        pid: of its subreaper.
        scratch: of the run.
    """
    kept = scratch / KEPT
    return counted(kept.read_text(encoding="ascii") if kept.exists() else read_counters(pid))


def counted(text: str) -> Attempts:
    """Read the counters (`/proc/net/snmp`, `snmp6`): a line of names, then one of numbers, or a name and a number."""
    found: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines()]
    for names, numbers in itertools.pairwise(lines):
        if names and numbers and names[0] == numbers[0] and names[0].endswith(":"):
            kind = names[0]
            found |= {
                kind + name: int(number)
                for name, number in zip(names[1:], numbers[1:], strict=False)
                if _is_number(number)
            }
    found |= {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
    outside = found.get("Ip:OutNoRoutes", 0) + found.get("Ip6OutNoRoutes", 0)
    return Attempts(outside, found.get("Tcp:AttemptFails", 0))


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
