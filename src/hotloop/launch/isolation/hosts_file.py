"""The machine's own name and addresses inside a network that has a loopback alone.

`torchrun --standalone` and rendezvous of several nodes publish the machine's name, and every rank connects to what it
stands for. In a container on a bridge that is the container's outer address, which a new network namespace has not:
ranks would wait for each other until they give up.
"""

from __future__ import annotations

import socket
from pathlib import Path

import psutil

LOOPBACK = "127.0.0.1"
_MAPPED = "mapped-loopback"
"""What an address is called in the form that an IPv6 socket has for it. torch asks for that name at every connection of
ranks; without an answer here it would ask the name server, which is another machine."""


def own_addresses() -> list[str]:
    """Return the IPv4 addresses of this machine's interfaces, without the loopback's."""
    found = {
        known.address
        for group in psutil.net_if_addrs().values()
        for known in group
        if known.family is socket.AF_INET and not known.address.startswith("127.")
    }
    return sorted(found)


def hosts_file(scratch: Path, known: Path = Path("/etc/hosts")) -> str | None:
    """Write a hosts file in which this machine's names are the loopback; return its path, None: there is none here."""
    if not known.exists():
        return None
    names = sorted({socket.gethostname(), socket.getfqdn()} - {"localhost"})
    others = [line for line in known.read_text().splitlines() if not set(names) & set(line.split()[1:])]
    mapped = [f"::ffff:{address} {_MAPPED}" for address in (LOOPBACK, *own_addresses())]
    path = scratch / "hosts"
    path.write_text("\n".join([f"{LOOPBACK} localhost {' '.join(names)}", *mapped, *others]) + "\n")
    return str(path)
