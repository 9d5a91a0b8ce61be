"""The command that enters an isolation and then becomes the user's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hotloop.launch.isolation import enter
from hotloop.launch.isolation.hosts_file import hosts_file, own_addresses
from hotloop.launch.isolation.values import Isolation


def wrap(
    argv: Sequence[str], isolation: Isolation, scratch: Path, cwd: Path, lifeline: int | None = None
) -> list[str]:
    """Return the argument vector that enters the isolation and then becomes the command.

    Args:
        argv: the command.
        isolation: what it is kept from.
        scratch: of the run.
        cwd: where the command starts.
        lifeline: the descriptor of a pipe; when it closes, the run ends. None: nothing minds the run.
    """
    orders = scratch / "isolation.json"
    content = json.dumps(
        {
            "argv": list(argv),
            "covered": isolation.covered,
            "denied": isolation.denied,
            "unconnected": isolation.unconnected,
            "scratch": str(scratch),
            "scratch_root": str(scratch.parent),
            "processes": isolation.processes,
            "network": isolation.network,
            "addresses": own_addresses() if isolation.network else [],
            "hosts": hosts_file(scratch) if isolation.network else None,
            "writable": isolation.writable,
            "own": isolation.own,
            "copies": isolation.copies,
            "listed_ids": isolation.listed_ids,
            "cwd": str(cwd),
            "lifeline": lifeline,
        }
    )
    with open(os.open(orders, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    # Isolated and without site: neither the user's sitecustomize nor a module of the current folder runs here.
    return [sys.executable, "-I", "-S", enter.__file__, str(orders)]


def could_not_enter(exit_code: int | None, scratch: Path) -> bool:
    """Whether a run ended because its isolation failed."""
    return exit_code == enter.FAILED and (scratch / "isolation-error").exists()
