"""What two stored sessions allow to say of one another."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from hotloop.model.comparison import Comparison, TunedSide
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.origin import ORIGIN
from hotloop.report.content.figures import label
from hotloop.review.changes import changes, code_between
from hotloop.store.keys import OBSERVATION, RESULT
from hotloop.store.nearest import folder_of_sessions
from hotloop.store.session import find_session
from hotloop.tune.compare.compare import compare_observations


def compare_sessions(first: str, second: str) -> Comparison:
    """Return what two stored sessions allow to say.

    Raises:
        HotloopError: one of them holds no observation.
    """
    folder = folder_of_sessions(Path.cwd())
    (before, old, was), (after, new, now) = _read(folder, first), _read(folder, second)
    found = compare_observations(before, after, (first, second))
    return msgspec.structs.replace(
        found,
        changes=changes(before, after, (_packages(old), _packages(new))),
        tuned=(was, now),
        code=code_between(old, new, Path.cwd()),
    )


def _packages(of: Origin | None) -> dict[str, str] | None:
    """Return the packages of a session; None: a session without any is of a Python that was not seen."""
    return None if of is None else of.packages or None


def _read(folder: Path, name: str) -> tuple[Observation, Origin | None, TunedSide | None]:
    with contextlib.closing(find_session(folder, name)) as session:
        seen = session.get(OBSERVATION, Observation)
        if seen is None:
            raise HotloopError(
                f"the session {name} holds no observation", "compare sessions of observe, diagnose or tune"
            )
        result = session.get(RESULT, TuneResult)
        return seen, session.get(ORIGIN, Origin), _tuned(result) if result is not None else None


def _tuned(result: TuneResult) -> TunedSide:
    plan = result.plan
    compared = plan.parity is not None and plan.parity.measured
    return TunedSide(
        steps={label(one.name, one.params): Ratio(one.ratio, one.low, one.high) for one in plan.steps},
        speedup=plan.speedup if plan.steps else None,
        learns_the_same=plan.parity.passed if compared and plan.parity is not None else None,
    )
