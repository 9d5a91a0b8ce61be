"""Ceilings and predicted gains that `diagnose` measured of the same program before: no budget is spent on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Coverage, Observation
from hotloop.model.origin import Origin
from hotloop.observe.run.origin import ORIGIN
from hotloop.store.keys import OBSERVATION
from hotloop.store.session import Session, sessions
from hotloop.tune.plan.compatibility import moved

SAME_PACE = 1.15
"""Runs of one program differ by 5 to 15%; what was measured at another pace was measured beside something else."""


def with_earlier_limits(seen: Observation, of: Origin, folder: Path) -> Observation:
    """Return an observation with the limits that the newest matching session tells; as it is where none does.

    Args:
        seen: what was observed now.
        of: what the session that begins is of.
        folder: where the sessions lie.
    """
    for name, earlier in _diagnosed(of, folder):
        if _is_same(earlier, seen) and (earlier.ceilings is not None or earlier.predictions):
            gap = Coverage("ceilings and predictions in this session", f"they are those of session {name}")
            return msgspec.structs.replace(
                seen,
                ceilings=earlier.ceilings,
                predictions=earlier.predictions,
                coverage=(*seen.coverage, gap),
            )
    return seen


def _diagnosed(of: Origin, folder: Path) -> Iterator[tuple[str, Observation]]:
    """The observations of `diagnose` of the same command and code, the newest first."""
    for path in sessions(folder):
        with contextlib.suppress(HotloopError), contextlib.closing(Session(path)) as session:
            before = session.get(ORIGIN, Origin)
            if before is None or before.kind != "diagnose":
                continue
            if (before.words, before.code, before.packages) != (of.words, of.code, of.packages):
                continue
            seen = session.get(OBSERVATION, Observation)
            if seen is not None:
                yield session.name, seen


def _is_same(before: Observation, now: Observation) -> bool:
    """Whether two observations are of the same script on the same machine at the same pace."""
    if before.program.script_sha256 != now.program.script_sha256 or moved(before.machine):
        return False
    if before.step is None or now.step is None:
        return False
    pace = before.step.median_s / now.step.median_s
    return 1 / SAME_PACE <= pace <= SAME_PACE
