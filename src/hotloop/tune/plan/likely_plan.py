"""The likely plan of the newest session: what was promising there and not proven in time."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import msgspec

from hotloop.model.errors import HotloopError
from hotloop.model.tuning import Plan, TuneResult
from hotloop.stats.empty_plan import why_empty
from hotloop.store.keys import RESULT
from hotloop.store.session import Session, sessions


def likely_plan(folder: Path) -> Plan:
    """Return it as a plan, for those who ask for it; it is never taken otherwise.

    Raises:
        HotloopError: no session of this folder has one.
    """
    for path in sessions(folder):
        result = _result(path)
        if result is None:
            continue
        if not result.likely:
            raise _none_likely(path.stem, result)
        return msgspec.structs.replace(result.plan, steps=result.likely[0].steps)
    raise HotloopError("no session here has tuned anything", "make a plan first: hotloop tune COMMAND")


def _result(path: Path) -> TuneResult | None:
    """What a session found; None: it tuned nothing, or is damaged."""
    try:
        with contextlib.closing(Session(path)) as session:
            return session.get(RESULT, TuneResult)
    except HotloopError:
        return None


def _none_likely(name: str, result: TuneResult) -> HotloopError:
    if result.plan.steps:
        return HotloopError(
            f"the newest tuning session here ({name}) left nothing likely beside its proven plan",
            "run that plan: leave out --likely",
        )
    open_ones = [one for one in result.refused if one.reason.startswith("promising")]
    why = f"{open_ones[0].name} was {open_ones[0].reason}" if open_ones else why_empty(result)
    return HotloopError(
        f"the newest tuning session here ({name}) has no likely plan: {why}",
        f"go on with it: {shlex.join(('hotloop', 'tune', '--resume', *result.command))}",
    )
