"""`hotloop tune` on a program, beside the plans that people would write, all measured anew.

The session gets its budget and nothing else. Then the original, the session's plan and the others run beside one
another in fresh sets, as in a confirmation: what the session believed of its plan plays no part in the comparison.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.tune.side_by_side import Interval, SideBySide, shown
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Switched, Trial, TuneResult
from hotloop.optimize.registry import get
from hotloop.store.session import find_session
from hotloop.tune.executor import PlanSteps

WITHOUT_BLOCKS = Switched(num_holds=0, settle_steps=0)


class ByHand(msgspec.Struct, frozen=True):
    """An optimization that somebody who tunes by hand would pick for a program."""

    name: str
    params: dict[str, Any] = {}


class Tuned(msgspec.Struct, kw_only=True):
    """What came of one program."""

    name: str
    repository: str
    """Where a published one comes from, else its kind."""
    budget_s: float
    absent: str = ""
    failed: str = ""
    wall_s: float = 0.0
    plan: tuple[str, ...] = ()
    claimed: Interval | None = None
    """By the session; None: its plan is empty."""
    likely: Interval | None = None
    by_hand_steps: tuple[str, ...] = ()
    measured: Interval | None = None
    """The session's plan over the original, measured anew; None: it is empty."""
    by_hand: Interval | None = None
    over_by_hand: Interval | None = None
    """The session's plan over the one by hand; above 1 the session's is faster."""
    recipes: dict[str, Interval | None] = {}
    """What everybody switches on, over the original; None: too few blocks, or it failed."""
    over_recipes: dict[str, Interval | None] = {}
    """The session's plan over each."""
    num_trials: int = 0
    step_s: float = 0.0
    device: str = "cpu"
    trials: tuple[Trial, ...] = ()
    """Of the session, without their blocks."""


def tune(
    row: Tuned,
    argv: Sequence[str],
    by_hand: Sequence[PlanSteps],
    recipes: Mapping[str, PlanSteps] | None = None,
    keep: Path | None = None,
) -> None:
    """Tune the program of the current folder, and measure what came of it.

    Args:
        row: takes what came of it.
        argv: the command.
        by_hand: plans that somebody may come to by hand; the one that comes out fastest counts.
        recipes: what is switched on without a look at the program, by name.
        keep: a folder for the session's screen and its files; None: they are not kept.
    """
    began = time.monotonic()
    command = [sys.executable, "-m", "hotloop", "tune", "--budget", f"{row.budget_s:g}s", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    row.wall_s = time.monotonic() - began
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{row.name}.txt").write_text(f"{done.stdout}\n{done.stderr}")
        shutil.copytree(".hotloop", keep / row.name, dirs_exist_ok=True)
    if done.returncode:
        row.failed = (done.stdout + done.stderr)[-1500:]
        return
    observation, plan = _read(row)
    _measure(row, argv, observation, plan, by_hand, recipes or {})


def steps_of(plan: Sequence[ByHand]) -> PlanSteps:
    """Return a plan by hand as the executor takes it."""
    return tuple(Candidate(name=one.name, params=one.params, numerics=get(one.name).numerics) for one in plan)


def _read(row: Tuned) -> tuple[Observation, PlanSteps]:
    with contextlib.closing(find_session(Path.cwd())) as session:
        result, observation = session.get("result", TuneResult), session.get("observation", Observation)
    assert result is not None
    assert observation is not None
    row.plan = tuple(step.name + (str(step.params) if step.params else "") for step in result.plan.steps)
    row.num_trials, row.step_s = len(result.trials), result.baseline.step_s
    row.device = observation.program.device
    row.trials = tuple(
        msgspec.structs.replace(trial, outcome=WITHOUT_BLOCKS, key="", incumbent=())
        for trial in result.trials
    )
    if result.plan.speedup is not None:
        row.claimed = msgspec.structs.astuple(result.plan.speedup)
    if result.likely:
        row.likely = (result.likely[0].ratio, result.likely[0].low, result.likely[0].high)
    return observation, tuple(
        Candidate(name=step.name, params=step.params, numerics=step.numerics) for step in result.plan.steps
    )


def _measure(
    row: Tuned,
    argv: Sequence[str],
    observation: Observation,
    plan: PlanSteps,
    by_hand: Sequence[PlanSteps],
    recipes: Mapping[str, PlanSteps],
) -> None:
    """Run the original and all plans beside one another; of those by hand the one that came out fastest counts."""
    plans = [(), *([plan] if plan else []), *by_hand, *recipes.values()]
    if len(plans) == 1:
        return
    ran = SideBySide(argv, observation, plans)
    # An empty plan leaves the program as it was.
    ours, first = (1, 2) if plan else (0, 1)
    if plan:
        row.measured = ran.ratio(0, ours)
    last = first + len(by_hand)
    measured = [(ratio, at) for at in range(first, last) if (ratio := ran.ratio(0, at))]
    if measured:
        row.by_hand, best = max(measured)
        row.by_hand_steps = tuple(step.label for step in plans[best])
        row.over_by_hand = ran.ratio(best, ours)
    for at, name in enumerate(recipes, last):
        row.recipes[name], row.over_recipes[name] = ran.ratio(0, at), ran.ratio(at, ours)


def say(row: Tuned) -> str:
    """Return a row's line."""
    if row.absent or row.failed:
        return f"{row.name}: {row.absent or row.failed}"
    return (
        f"{row.name}: claimed {shown(row.claimed)}, measured anew {shown(row.measured)}, by hand {shown(row.by_hand)}, "
        f"over by hand {shown(row.over_by_hand)}, {row.wall_s:.0f} s, {', '.join(row.plan) or 'empty plan'}"
    )


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def means(rows: Sequence[Tuned]) -> str:
    """Say how far tune and the plans by hand came, in the geometric mean."""
    both = [row for row in rows if row.over_by_hand and row.by_hand]
    if not both:
        return ""
    gained = geometric_mean([row.measured[0] if row.measured else 1.0 for row in both])
    by_hand = geometric_mean([max(1.0, row.by_hand[0]) for row in both if row.by_hand])
    return (
        f"Geometric mean over {len(both)} programs: tune {gained:.2f}x, by hand {by_hand:.2f}x (where a plan by hand "
        "was slower than the program as it was, the program as it was counts)."
    )
