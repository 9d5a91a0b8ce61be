"""Decide what a run is isolated from, and how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.isolation import enter
from hotloop.launch.isolation.namespace import COVERS
from hotloop.launch.isolation.own_name import hosts_file, own_addresses

NO_NAMESPACES = "HOTLOOP_NO_NAMESPACES"
"""Set to anything, this takes namespaces as not permitted: a way to test the guard that stands in for them."""
_GUARD_ONLY = (
    "no overlay is permitted on this machine; a guard inside Python redirects writes instead, which misses those of "
    "C++, Rust and SQLite code and of programs that are not Python"
)


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is kept from the user's files.

    Attributes:
        folders: covered by an overlay; empty where overlays are not to be had.
        network: the run has a loopback network of its own.
        missing: why it is less than wanted, for the report; None: it is all there.
        guarded: kept from writes by a guard inside Python alone, where there is no overlay.
    """

    folders: tuple[str, ...] = ()
    network: bool = False
    missing: str | None = None
    guarded: tuple[str, ...] = ()


def plan_isolation(argv: Sequence[str], cwd: Path, scratch_root: Path, *, network: bool) -> Isolation:
    """Return the strongest isolation that this machine permits, tried out once.

    Args:
        argv: the command; folders that its words name are protected too.
        cwd: where it runs.
        scratch_root: never covered; holds what is written instead.
        network: whether runs may have a network of their own (they need no other).
    """
    folders = protected_folders(argv, cwd, scratch_root)
    wanted = Isolation(folders=tuple(str(folder) for folder in folders), network=network)
    error = _try(wanted, scratch_root)
    if error is None:
        return wanted
    if network:
        without = Isolation(folders=wanted.folders, network=False, missing=f"no network of its own: {error}")
        if _try(without, scratch_root) is None:
            return without
    return Isolation(guarded=wanted.folders, missing=f"{_GUARD_ONLY} ({error})")


def guard_orders(isolation: Isolation, scratch: Path) -> dict[str, Any]:
    """Return what the probe is told of the guard, as fields of its `ProbeConfig`; nothing where there is an overlay."""
    if not isolation.guarded:
        return {}
    place = scratch / "writes" / "guard"
    place.mkdir(parents=True)
    (place / COVERS).write_text("/")  # the guard keeps whole paths
    return {"guard": isolation.guarded, "guard_scratch": str(place)}


def protected_folders(argv: Sequence[str], cwd: Path, scratch_root: Path) -> list[Path]:
    """Return the folders that the program may write to and that are the user's, none inside another."""
    wanted = [_project_root(cwd), Path.home()]
    for word in argv[1:]:
        value = word.split("=", 1)[-1]
        if "/" in value or value.endswith(".py"):
            wanted.append(_existing(cwd / value))
    usable = {folder.resolve() for folder in wanted}
    usable = {folder for folder in usable if _may_cover(folder, scratch_root)}
    return sorted(folder for folder in usable if not any(parent in usable for parent in folder.parents))


def _project_root(cwd: Path) -> Path:
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _may_cover(folder: Path, scratch_root: Path) -> bool:
    systems = ("/proc", "/sys", "/dev", "/run", "/usr", "/bin", "/lib", "/lib64", "/etc", "/sbin", "/boot")
    top = {Path("/"), Path("/var"), Path("/home")}
    if (
        folder in top
        or str(folder).startswith(tuple(f"{name}/" for name in systems))
        or str(folder) in systems
    ):
        return False
    scratch = scratch_root.resolve()
    return (
        folder.is_dir()
        and folder != scratch
        and folder not in scratch.parents
        and scratch not in folder.parents
    )


def _try(isolation: Isolation, scratch_root: Path) -> str | None:
    """Return why the isolation cannot be entered, or None."""
    if os.environ.get(NO_NAMESPACES):
        return f"{NO_NAMESPACES} is set"
    with tempfile.TemporaryDirectory(dir=scratch_root) as scratch:
        argv = wrap(["true"], isolation, Path(scratch), Path.cwd(), os.environ)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        reason = Path(scratch) / "isolation-error"
        if done.returncode == 0:
            return None
        return (
            reason.read_text() if reason.exists() else done.stderr.strip()[-200:] or f"exit {done.returncode}"
        )


def wrap(
    argv: Sequence[str], isolation: Isolation, scratch: Path, cwd: Path, environment: Mapping[str, str]
) -> list[str]:
    """Return the argument vector that enters the isolation and then becomes the command in that environment."""
    orders = scratch / "isolation.json"
    orders.write_text(
        json.dumps(
            {
                "argv": list(argv),
                "folders": isolation.folders,
                "scratch": str(scratch),
                "network": isolation.network,
                "addresses": own_addresses() if isolation.network else [],
                "hosts": hosts_file(scratch) if isolation.network else None,
                "cwd": str(cwd),
                "environment": dict(environment),
            }
        )
    )
    # Isolated and without site: neither the user's sitecustomize nor a module of the current folder runs here.
    return [sys.executable, "-I", "-S", enter.__file__, str(orders)]


def could_not_enter(exit_code: int | None, scratch: Path) -> bool:
    """Whether a run ended because its isolation failed."""
    return exit_code == enter.FAILED and (scratch / "isolation-error").exists()
