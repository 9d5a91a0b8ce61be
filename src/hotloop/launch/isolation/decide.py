"""Decide how a run is kept from the user's files, and say beforehand what that does not cover."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.isolation import landlock
from hotloop.launch.isolation.attempt import NO_NAMESPACES, Attempt, attempt
from hotloop.launch.isolation.id_maps import can_map_more
from hotloop.launch.isolation.overlays import COVERS, SHARED_MEMORY
from hotloop.launch.isolation.own_copies import copied
from hotloop.launch.isolation.own_folders import may_write, own_overlays, project_folders
from hotloop.launch.isolation.places import Places, places_to_try
from hotloop.launch.isolation.values import Exceptions, Isolation
from hotloop.launch.isolation.wrap import could_not_enter, wrap
from hotloop.model.errors import ExitCode, HotloopError

__all__ = ["NO_NAMESPACES", "Exceptions", "Isolation", "could_not_enter", "wrap"]
NO_LANDLOCK = "HOTLOOP_NO_LANDLOCK"
"""Set to anything, this takes Landlock as not there: it denies what the guard does not see."""
_GUARD = "no overlay can be used here, so a guard inside Python redirects writes to scratch"
_DENIED = (
    "what C++, Rust and other programs write fails (`Permission denied`), but in scratch and shared memory; "
    "the mode and the times of your files they can change"
)
_MISSED = (
    "it misses what C++ or Rust code and programs that are not Python write: that would reach your files"
)


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
    folders = project_folders(argv, cwd)
    wanted = Isolation(
        covered=True,
        processes=True,
        network=network,
        writable=writable,
        own=tuple(own_overlays(argv, cwd, os.environ)),
    )
    places = places_to_try([one for one in folders if not any(_is_in(one, path) for path in writable)])
    found, done = _first_that_works(wanted, folders, scratch_root, places)
    if done.error is None:
        return _told(found, done.read_only, folders)
    isolation = _without_overlay(done.error, writable, scratch_root, allowed=excepted.all_writes)
    said = "; ".join([isolation.missing or "", *_said_of(writable)])
    if not isolation.denied or not any(_is_in(path, SHARED_MEMORY) for path in folders):
        return msgspec.structs.replace(isolation, missing=said)
    uncovered = (
        f"the program works in {SHARED_MEMORY}, where C++ code and other programs can change your files"
    )
    return msgspec.structs.replace(isolation, missing=f"{said}; {uncovered}", uncovered=uncovered)


def _first_that_works(
    wanted: Isolation, folders: Sequence[str], scratch_root: Path, places: Places
) -> tuple[Isolation, Attempt]:
    """Return the first overlay in which the program can write, or the last one with the reason against it."""
    done = attempt(wanted, scratch_root, places)
    for less in _lesser(wanted, done.error or ""):
        if done.error is None or done.unwritable:
            break
        wanted, done = less, attempt(less, scratch_root, places)
    if os.getuid() == 0:  # who knows every user and group: it is something else
        return wanted, done
    if done.unwritable and can_map_more():
        listed = msgspec.structs.replace(wanted, listed_ids=True)
        again = attempt(listed, scratch_root, places)
        if again.error is None:
            return listed, again
    if done.unwritable:
        wanted = _with_copies(wanted, folders, scratch_root)
        done = attempt(wanted, scratch_root, places)
    return wanted, done


def _lesser(wanted: Isolation, error: str) -> Iterator[Isolation]:
    """Yield what to try where the whole isolation cannot be entered, the strongest first, with what is missing."""
    no_processes = (
        f"a run can signal other processes of yours and leave System V objects: no namespace ({error})"
    )
    no_network = f"runs have no network of their own ({error})"
    yield msgspec.structs.replace(wanted, processes=False, missing=no_processes)
    if wanted.network:
        yield msgspec.structs.replace(wanted, network=False, missing=no_network)
        both = f"{no_processes}; {no_network}"
        yield msgspec.structs.replace(wanted, processes=False, network=False, missing=both)


def _with_copies(isolation: Isolation, folders: Sequence[str], scratch_root: Path) -> Isolation:
    """Return the isolation with a layer of copies over each of the project's folders that this user may write to."""
    tops = [
        one
        for one in folders
        if may_write(one) and not any(_is_in(one, other) for other in folders if other != one)
    ]
    made = [copied(folder, scratch_root, os.getpid()) for folder in tops]
    left_out = [path for one in made for path in one.left_out]
    said = [isolation.missing] if isolation.missing else []
    if left_out:
        others = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        said.append(
            f"{left_out[0]}{others}: too large to be copied, and of a group that an overlay cannot keep, so a run "
            "cannot change it in place"
        )
    return msgspec.structs.replace(
        isolation,
        # An overlay inside one of these would hide its copies.
        own=tuple(
            sorted({*(one for one in isolation.own if not any(_is_in(one, top) for top in tops)), *tops})
        ),
        copies={one.folder: one.copy for one in made},
        missing="; ".join(said) or None,
    )


def _told(isolation: Isolation, read_only: Sequence[tuple[str, str]], folders: Sequence[str]) -> Isolation:
    """Say what is read-only for a run; refuse where the program works there."""
    said = [isolation.missing] if isolation.missing else []
    for folder, reason in read_only:
        if any(_is_in(path, folder) for path in folders) and not any(
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


def _without_overlay(
    error: str, writable: tuple[str, ...], scratch_root: Path, *, allowed: bool
) -> Isolation:
    """The guard inside Python, and Landlock for what it does not see."""
    if not allowed and not os.environ.get(NO_LANDLOCK) and landlock.version() >= landlock.DENIES_TRUNCATION:
        denied = Isolation(
            guarded=True, denied=True, writable=writable, missing=f"{_GUARD}; {_DENIED} ({error})"
        )
        if attempt(denied, scratch_root).error is None:
            return denied
    return Isolation(
        guarded=True, writable=writable, missing=f"{_GUARD}; {_MISSED} ({error})", uncovered=_MISSED
    )


def denied_alone(argv: Sequence[str], cwd: Path) -> Isolation | None:
    """Return what lets a command run as the user would, but for writes and connections, which the kernel denies.

    None: this kernel cannot, or the program works in shared memory, which stays writable.
    """
    can = not os.environ.get(NO_LANDLOCK) and landlock.version() >= landlock.DENIES_CONNECTIONS
    if not can or any(_is_in(path, SHARED_MEMORY) for path in project_folders(argv, cwd)):
        return None
    return Isolation(denied=True, unconnected=True)


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


def _is_in(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)
