"""The likely plan of the newest session: what was promising there and not proven in time."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hotloop.model.errors import HotloopError
from hotloop.model.tuning import Plan, TuneResult
from hotloop.store.session import Session, sessions


def likely_plan(folder: Path) -> Plan:
    """Return it as a plan, for those who ask for it; it is never taken otherwise.

    Raises:
        HotloopError: no session of this folder has one.
    """
    for path in sessions(folder):
        session = Session(path)
        try:
            result = session.get("result", TuneResult)
        finally:
            session.close()
        if result is None:
            continue
        if not result.likely:
            break
        return msgspec.structs.replace(result.plan, steps=result.likely[0].steps)
    raise HotloopError(
        "the newest tuning session here has no likely plan",
        "run its proven plan without --likely, or make one with hotloop tune COMMAND",
    )
