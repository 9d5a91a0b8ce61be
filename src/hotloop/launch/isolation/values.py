"""How a run is kept from the user's files, and what the user excepts from that."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is kept from the user's files.

    Attributes:
        covered: every file system is read through to, and written to scratch.
        guarded: a guard inside Python redirects writes, where there is no overlay.
        denied: the kernel denies every other write (Landlock).
        unconnected: the kernel denies TCP connections, too (Landlock).
        processes: the run has processes and System V objects of its own, and sees and signals no others.
        network: the run has a loopback network of its own.
        writable: what the user excepted, as real paths.
        own: folders that need an overlay of their own, parents first.
        copies: for some of them, a folder of copies that can be changed where the real files cannot.
        listed_ids: the users and groups of `/etc/subuid` and `/etc/subgid` are known in it.
        missing: what is less than wanted, for the report; None: it is all there.
        uncovered: what of the user's files the program may change; None: nothing.
    """

    covered: bool = False
    guarded: bool = False
    denied: bool = False
    unconnected: bool = False
    processes: bool = False
    network: bool = False
    writable: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    copies: dict[str, str] = {}
    listed_ids: bool = False
    missing: str | None = None
    uncovered: str | None = None


class Exceptions(msgspec.Struct, frozen=True):
    """What the user lets a program change or reach.

    Attributes:
        writable: files and folders.
        all_writes: go on where not everything can be covered.
        network: services of this machine and other machines may be reached.
    """

    writable: tuple[Path, ...] = ()
    all_writes: bool = False
    network: bool = False

    def options(self) -> list[str]:
        """Return how they are typed, for a command that runs the same program again."""
        writable = [word for path in self.writable for word in ("--writable", str(path))]
        return [*writable, *["--allow-writes"] * self.all_writes, *["--network"] * self.network]
