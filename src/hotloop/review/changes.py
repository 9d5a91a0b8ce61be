"""What differs between two sessions: code, machine, packages, settings, data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from hotloop.machine.environment.code_state import changes_between
from hotloop.model.comparison import Change
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.quantities import counted
from hotloop.model.secrets import redacted_environment, redacted_words

MAX_CHANGES = 60
_Packages = Mapping[str, str] | None
_MACHINE = {
    "cpu_model": "processor",
    "num_cores": "cores",
    "memory_bytes": "memory",
    "os": "system",
    "isa": "instructions",
}
_MEMORY_TOLERANCE = 0.05
"""MemTotal moves with the kernel's reservations."""


def code_between(before: Origin | None, after: Origin | None, folder: Path) -> tuple[str, ...] | None:
    """Return what Git says of the code of two sessions; None: a session was not of a repository, or it is not here."""
    if before is None or after is None or before.code is None or after.code is None:
        return None
    old, new = before.code, after.code
    lines = () if old.commit == new.commit else changes_between(folder, old.commit, new.commit)
    if lines is None:
        lines = (f"{old.commit[:12]} is not in this repository",)
    if old.diff_sha256 != new.diff_sha256:
        names = sorted({*old.changed, *new.changed})
        lines = (*lines, f"changes that are not committed differ: {', '.join(names[:10])}")
    return tuple(lines)


def changes(
    before: Observation, after: Observation, packages: tuple[_Packages, _Packages]
) -> tuple[Change, ...]:
    """Return what else differs.

    Args:
        before: the first.
        after: the second.
        packages: of both, with their versions; None: not known.
    """
    found = [*_machine(before, after), *_program(before, after), *_packages(*packages)]
    left_out = [Change(f"and {len(found) - MAX_CHANGES} more", "", "")] if len(found) > MAX_CHANGES else []
    return (*found[:MAX_CHANGES], *left_out)


def _machine(before: Observation, after: Observation) -> Iterator[Change]:
    for key, word in _MACHINE.items():
        old, new = before.machine.get(key), after.machine.get(key)
        close = key == "memory_bytes" and old and new and abs(old - new) <= _MEMORY_TOLERANCE * old
        if old != new and not close:
            yield Change(word, _said(old), _said(new))
    yield from _differing(
        "accelerators", before.machine.get("accelerators"), after.machine.get("accelerators")
    )


def _program(before: Observation, after: Observation) -> Iterator[Change]:
    old, new = before.program, after.program
    yield from _differing("command", *(shlex.join(redacted_words(seen.command)) for seen in (before, after)))
    yield from _differing(
        "script", (old.script_sha256 or "unknown")[:12], (new.script_sha256 or "unknown")[:12]
    )
    yield from _differing("torch", old.torch_version, new.torch_version)
    yield from _differing("device", old.device, new.device)
    yield from _differing("threads", old.num_threads, new.num_threads)
    yield from _differing("processes", len(before.ranks), len(after.ranks))
    loaders = [[_loader(one) for one in seen.loaders] for seen in (old, new)]
    yield from _differing("data", "; ".join(loaders[0]), "; ".join(loaders[1]))
    yield from _maps("variable", redacted_environment(old.environment), redacted_environment(new.environment))


def _loader(one: object) -> str:
    names = ("dataset", "dataset_len", "batch_size", "num_workers", "pin_memory")
    return ", ".join(f"{name}={getattr(one, name)}" for name in names)


def _packages(before: _Packages, after: _Packages) -> Iterator[Change]:
    if before is not None and after is not None:
        yield from _maps("package", before, after)
    elif before is not None or after is not None:
        known = (None if one is None else counted(len(one), "package") for one in (before, after))
        yield from _differing("packages", *known)


def _maps(word: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        yield from _differing(f"{word} {name}", old.get(name, "none"), new.get(name, "none"))


def _differing(what: str, old: object, new: object) -> Iterator[Change]:
    if old != new:
        yield Change(what, _said(old), _said(new))


def _said(value: object) -> str:
    return "unknown" if value is None else str(value)
