"""Decide how a run is kept from the user's files, and say beforehand what that does not cover."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.isolation import enter, landlock
from hotloop.launch.isolation.overlays import COVERS, SHARED_MEMORY
from hotloop.launch.isolation.own_name import hosts_file, own_addresses
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.model.errors import ExitCode, HotloopError

NO_NAMESPACES = "HOTLOOP_NO_NAMESPACES"
"""Set to anything, this takes namespaces as not permitted: a way to test the guard that stands in for them."""
NO_LANDLOCK = "HOTLOOP_NO_LANDLOCK"
"""Likewise for Landlock, which denies what the guard does not see."""
_GUARD = "no overlay is permitted on this machine, so a guard inside Python redirects writes to scratch"
_DENIED = (
    "what C++, Rust and other programs write fails (`Permission denied`), but in scratch and shared memory; "
    "the mode and the times of your files they can change"
)
_MISSED = (
    "it misses what C++ or Rust code and programs that are not Python write: that would reach your files"
)


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is kept from the user's files.

    Attributes:
        covered: every file system is read through to, and written to scratch.
        guarded: a guard inside Python redirects writes, where there is no overlay.
        denied: the kernel denies every other write (Landlock).
        network: the run has a loopback network of its own.
        writable: what the user excepted, as real paths.
        own: folders of others that this user may write to.
        missing: what is less than wanted, for the report; None: it is all there.
        uncovered: what of the user's files the program may change; None: nothing.
    """

    covered: bool = False
    guarded: bool = False
    denied: bool = False
    network: bool = False
    writable: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    missing: str | None = None
    uncovered: str | None = None


class Exceptions(msgspec.Struct, frozen=True):
    """What the user lets a program change.

    Attributes:
        writable: files and folders.
        all_writes: go on where not everything can be covered.
    """

    writable: tuple[Path, ...] = ()
    all_writes: bool = False


def plan_isolation(
    argv: Sequence[str],
    cwd: Path,
    scratch_root: Path,
    *,
    network: bool,
    exceptions: Exceptions | None = None,
) -> Isolation:
    """Return the strongest isolation that this machine permits, tried out once.

    Args:
        argv: the command; what its words name has to be writable in the run.
        cwd: where it runs.
        scratch_root: never covered; holds what is written instead.
        network: whether runs may have a network of their own (they need no other).
        exceptions: what the user lets the program change.

    Raises:
        HotloopError: the program would run in a folder that cannot be covered.
    """
    excepted = exceptions or Exceptions()
    writable = tuple(os.path.realpath(path) for path in excepted.writable)
    own = tuple(_own_overlays(argv, cwd))
    wanted = Isolation(covered=True, network=network, writable=writable, own=own)
    error, read_only = _try(wanted, scratch_root)
    if error is not None and network:
        without = msgspec.structs.replace(wanted, network=False, missing=f"no network of its own: {error}")
        if _try(without, scratch_root)[0] is None:
            wanted, error = without, None
    if error is None:
        return _told(wanted, read_only, argv, cwd)
    isolation = _without_overlay(error, writable, scratch_root, allowed=excepted.all_writes)
    said = "; ".join([isolation.missing or "", *_said_of(writable)])
    if not isolation.denied or not any(_is_in(path, SHARED_MEMORY) for path in _real(argv, cwd)):
        return msgspec.structs.replace(isolation, missing=said)
    uncovered = (
        f"the program works in {SHARED_MEMORY}, where C++ code and other programs can change your files"
    )
    return msgspec.structs.replace(isolation, missing=f"{said}; {uncovered}", uncovered=uncovered)


def _told(isolation: Isolation, read_only: list[list[str]], argv: Sequence[str], cwd: Path) -> Isolation:
    """Say what is read-only for a run; refuse where the program works there."""
    said = [isolation.missing] if isolation.missing else []
    named = _real(argv, cwd)
    for folder, reason in read_only:
        if any(_is_in(path, folder) for path in named) and not any(
            _is_in(folder, path) for path in isolation.writable
        ):
            raise HotloopError(
                f"{folder} cannot be covered ({reason}), and the program works there: it would change your files",
                f"let it write there: --writable {folder}, or copy the project to another disk",
                ExitCode.MACHINE,
            )
        said.append(f"{folder} cannot be covered ({reason}) and is read-only for the run")
    said += _said_of(isolation.writable)
    return msgspec.structs.replace(isolation, missing="; ".join(said) or None)


def _said_of(writable: tuple[str, ...]) -> list[str]:
    return [f"writes to {path} are real, as asked for (--writable)" for path in writable]


def _real(argv: Sequence[str], cwd: Path) -> list[str]:
    """The folders that a program works in, as far as its words tell, wherever links lead."""
    return [os.path.realpath(path) for path in (cwd, *_named(argv, cwd))]


def _without_overlay(
    error: str, writable: tuple[str, ...], scratch_root: Path, *, allowed: bool
) -> Isolation:
    """The guard inside Python, and Landlock for what it does not see."""
    if not allowed and not os.environ.get(NO_LANDLOCK) and landlock.version() >= landlock.DENIES_TRUNCATION:
        denied = Isolation(
            guarded=True, denied=True, writable=writable, missing=f"{_GUARD}; {_DENIED} ({error})"
        )
        if _try(denied, scratch_root)[0] is None:
            return denied
    return Isolation(
        guarded=True, writable=writable, missing=f"{_GUARD}; {_MISSED} ({error})", uncovered=_MISSED
    )


def check_covered(isolation: Isolation, *, allow_writes: bool) -> None:
    """Demand that nothing of the user's can be changed, unless he allows it.

    Raises:
        HotloopError: with what cannot be covered.
    """
    if isolation.uncovered is not None and not allow_writes:
        raise HotloopError(
            f"your files cannot be kept safe here: {isolation.missing}",
            "run it where user namespaces or Landlock are permitted (docker run --security-opt seccomp=unconfined), "
            "or, if the program may write where it runs, add --allow-writes",
            ExitCode.MACHINE,
        )


def guard_orders(isolation: Isolation, scratch: Path) -> dict[str, Any]:
    """Return what the probe is told of the guard, as fields of its `ProbeConfig`; nothing where there is an overlay."""
    if not isolation.guarded:
        return {}
    place = scratch / "writes" / "guard"
    place.mkdir(parents=True)
    (place / COVERS).write_text("/")  # the guard keeps whole paths
    free = (str(scratch.parent), "/proc", "/sys", *isolation.writable)
    return {"guard": ("/",), "guard_free": free, "guard_scratch": str(place)}


def guarded_environment(isolation: Isolation, scratch: Path) -> dict[str, str]:
    """Return variables of a guarded run: C and C++ code, which the guard cannot redirect, finds a temporary folder."""
    if not isolation.guarded:
        return {}
    folder = scratch / "tmp"
    folder.mkdir(exist_ok=True)
    return dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder))


def _own_overlays(argv: Sequence[str], cwd: Path) -> list[str]:
    """Folders of other users that this one may write to: they cannot be copied up inside an overlay over them all."""
    if os.getuid() == 0:
        return []
    wanted = {Path(os.path.realpath(path)) for path in (cwd, Path(tempfile.gettempdir()), *_named(argv, cwd))}
    wanted |= {Path("/tmp"), Path("/var/tmp"), Path("/run/lock"), Path("/var/lock")}
    folders = {folder for path in wanted for folder in (path, *path.parents) if folder.is_dir()}
    others = [one for one in folders if one.stat().st_uid != os.getuid() and os.access(one, os.W_OK)]
    return sorted({os.path.realpath(folder) for folder in others})


def _named(argv: Sequence[str], cwd: Path) -> list[Path]:
    """The nearest folders that the words of a command name, wherever links lead."""
    words = (word.split("=", 1)[-1] for word in argv[1:])
    return [_existing(cwd / word) for word in words if word and "\0" not in word and len(word) < 4096]


def _existing(path: Path) -> Path:
    real = Path(os.path.realpath(path))
    return next(folder for folder in (real, *real.parents) if os.path.isdir(folder))


def _is_in(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _try(isolation: Isolation, scratch_root: Path) -> tuple[str | None, list[list[str]]]:
    """Return why the isolation cannot be entered (None: it can), and what is read-only in it."""
    if isolation.covered and os.environ.get(NO_NAMESPACES):
        return f"{NO_NAMESPACES} is set", []
    if sys.platform != "linux":
        return "namespaces are a matter of Linux", []
    scratch = new_scratch("try", root=scratch_root)
    try:
        command = wrap(["/bin/true"], isolation, scratch, Path("/"))
        done = subprocess.run(
            command, env={}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        reason = scratch / "isolation-error"
        if done.returncode == 0:
            listed = scratch / enter.READ_ONLY
            return None, json.loads(listed.read_text()) if listed.exists() else []
        why = reason.read_text() if reason.exists() else done.stderr.strip()[-200:]
        return why or f"exit {done.returncode}", []
    finally:
        remove(scratch)


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
            "scratch": str(scratch),
            "scratch_root": str(scratch.parent),
            "network": isolation.network,
            "addresses": own_addresses() if isolation.network else [],
            "hosts": hosts_file(scratch) if isolation.network else None,
            "writable": isolation.writable,
            "own": isolation.own,
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
