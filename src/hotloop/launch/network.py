"""Whether a program talks to other machines: one that does cannot be given a network of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import psutil


def reaches_out(processes: Sequence[psutil.Process]) -> bool | None:
    """Return whether any of the processes is connected beyond this machine; None where that cannot be seen."""
    seen: bool | None = None
    for process in processes:
        try:
            connections = process.net_connections(kind="inet")
        except psutil.Error:
            continue
        seen = False if seen is None else seen
        if any(connection.raddr and not _is_local(connection.raddr.ip) for connection in connections):
            return True
    return seen


def _is_local(address: str) -> bool:
    return ipaddress.ip_address(address.split("%", maxsplit=1)[0]).is_loopback
