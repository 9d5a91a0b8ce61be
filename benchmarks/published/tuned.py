"""`hotloop tune` on a published script, beside the plan that a person would write, both measured anew.

The session gets its budget and nothing else. Then the original, the session's plan and the plan by hand run beside one
another in fresh sets, as in a confirmation: what the session believed of its plan plays no part in the comparison.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.published.corpus import ByHand, Entry
from benchmarks.published.place import Absent, Program, lay_out, lengthened
from benchmarks.tune.side_by_side import Interval, SideBySide, inside, shown
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Switched, Trial, TuneResult
from hotloop.optimize.registry import get
from hotloop.store.session import find_session
from hotloop.tune.executor import PlanSteps

WITHOUT_BLOCKS = Switched(num_holds=0, settle_steps=0)


class Tuned(msgspec.Struct, kw_only=True):
    """What came of one script."""

    name: str
    repository: str
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
    num_trials: int = 0
    step_s: float = 0.0
    device: str = "cpu"
    trials: tuple[Trial, ...] = ()
    """Of the session, without their blocks."""


def tuned(entry: Entry, sources: Path, site: Path | None, budget_s: float, keep: Path | None = None) -> Tuned:
    """Tune a script, and measure what came of it.

    Args:
        entry: the script.
        sources: where the repositories lie.
        site: packages that they need.
        budget_s: of the session.
        keep: a folder for the session's screen and its files; None: they are not kept.
    """
    row = Tuned(name=entry.name, repository=entry.repository, budget_s=budget_s)
    with TemporaryDirectory(prefix="published-") as scratch:
        try:
            program = lay_out(lengthened(entry), sources, site, Path(scratch))
        except Absent as why:
            row.absent = str(why)
            return row
        with inside(program.folder, program.environment):
            began = time.monotonic()
            command = [sys.executable, "-m", "hotloop", "tune", "--budget", f"{budget_s:g}s", *program.argv]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            row.wall_s = time.monotonic() - began
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{entry.name}.txt").write_text(f"{done.stdout}\n{done.stderr}")
                shutil.copytree(".hotloop", keep / entry.name, dirs_exist_ok=True)
            if done.returncode:
                row.failed = (done.stdout + done.stderr)[-1500:]
                return row
            _read(row, entry, program)
    return row


def _read(row: Tuned, entry: Entry, program: Program) -> None:
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
    plan = tuple(
        Candidate(name=step.name, params=step.params, numerics=step.numerics) for step in result.plan.steps
    )
    _measure(
        row, program, observation, plan, [_plan(one) for one in (entry.by_hand, *entry.or_by_hand) if one]
    )


def _plan(steps: Sequence[ByHand]) -> PlanSteps:
    return tuple(
        Candidate(name=one.name, params=one.params, numerics=get(one.name).numerics) for one in steps
    )


def _measure(
    row: Tuned, program: Program, observation: Observation, plan: PlanSteps, by_hand: Sequence[PlanSteps]
) -> None:
    """Run the original and all plans beside one another; of those by hand the one that came out fastest counts."""
    plans = [(), *([plan] if plan else []), *by_hand]
    if len(plans) == 1:
        return
    ran = SideBySide(program.argv, observation, plans)
    if plan:
        row.measured = ran.ratio(0, 1)
    measured = [
        (ratio, at) for at in range(len(plans) - len(by_hand), len(plans)) if (ratio := ran.ratio(0, at))
    ]
    if measured:
        row.by_hand, best = max(measured)
        row.by_hand_steps = tuple(step.label for step in plans[best])
        # An empty plan leaves the program as it was.
        row.over_by_hand = ran.ratio(best, 1 if plan else 0)


def say(row: Tuned) -> str:
    """Return a row's line."""
    if row.absent or row.failed:
        return f"{row.name}: {row.absent or row.failed}"
    return (
        f"{row.name}: claimed {shown(row.claimed)}, measured anew {shown(row.measured)}, by hand {shown(row.by_hand)}, "
        f"over by hand {shown(row.over_by_hand)}, {row.wall_s:.0f} s, {', '.join(row.plan) or 'empty plan'}"
    )


def table(rows: Sequence[Tuned]) -> list[str]:
    """Return the rows as a table, with the geometric means below."""
    ran = [row for row in rows if not row.absent]
    lines = [
        "| script | repository | step | budget | wall | trials | claimed | measured anew | by hand | plan over by hand "
        "| plan | the plan by hand |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.repository} | {row.step_s * 1e3:.1f} ms | {row.budget_s:.0f} s | {row.wall_s:.0f} s "
            f"| {row.num_trials} "
            f"| {shown(row.claimed)} | {shown(row.measured)} | {shown(row.by_hand)} | {shown(row.over_by_hand)} "
            f"| {', '.join(row.plan) or row.failed[-60:] or 'empty'} | {', '.join(row.by_hand_steps)} |"
            for row in ran
        ),
        "",
    ]
    both = [row for row in ran if row.over_by_hand and row.by_hand]
    if both:
        gained = _mean([row.measured[0] if row.measured else 1.0 for row in both])
        by_hand = _mean([max(1.0, row.by_hand[0]) for row in both if row.by_hand])
        lines.append(
            f"Geometric mean over {len(both)} scripts: tune {gained:.2f}x, by hand {by_hand:.2f}x (where a plan by "
            "hand was slower than the program as it was, the program as it was counts)."
        )
    return lines


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
