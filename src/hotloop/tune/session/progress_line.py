"""How far a session is, in one line for the person who waits."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.quantities import counted
from hotloop.model.ratio import Ratio


def progress_line(
    plan: Sequence[Candidate],
    num_trials: int,
    *,
    promising: Ratio | None,
    proven: Ratio | None,
    of_memory: bool = False,
) -> str:
    """Return the line.

    Gains of single trials are not multiplied: what they are worth together only fresh processes show.

    Args:
        plan: what is believed in by now.
        num_trials: that are over.
        promising: what the best plan in fresh processes that is not proven brings; None: there is none.
        proven: what the best plan that held in fresh processes brings; None: none did yet.
        of_memory: that is peak before over peak after, not speed.
    """
    # Knobs are screened before the first trial is over.
    done = f"{counted(num_trials, 'trial')} done; " if num_trials else ""
    return f"{done}{_best(plan, promising, proven, ' in peak memory' if of_memory else '')}"


def _best(plan: Sequence[Candidate], promising: Ratio | None, proven: Ratio | None, of: str) -> str:
    if proven is not None:
        return f"proven so far: {proven}{of}"
    if not plan:
        return "nothing has helped so far"
    names = " + ".join(dict.fromkeys(step.name for step in plan))
    if promising is None:
        return f"looks promising, not confirmed: {names}"
    return f"best so far: {promising}{of}, not proven yet, with {names}"
