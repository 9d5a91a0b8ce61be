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
    """Whether an address is this machine's own: ranks of one machine often meet at its outer address."""
    own = {known.address.split("%")[0] for group in psutil.net_if_addrs().values() for known in group}
    plain = address.split("%", maxsplit=1)[0]
    known = ipaddress.ip_address(plain)
    mapped = getattr(known, "ipv4_mapped", None)
    return plain in own or known.is_loopback or bool(mapped and (mapped.is_loopback or str(mapped) in own))
