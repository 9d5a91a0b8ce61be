"""The verdict of a gate: slower, not slower, or more than can be told beside these neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.gate import ClassBaseline, GateRun, GateVerdict
from hotloop.model.observation import Observation
from hotloop.model.outcome import Outcome
from hotloop.model.quantities import duration, percent
from hotloop.model.ratio import Ratio
from hotloop.model.step_series import StepKind
from hotloop.observe.run.stopping import StopRule
from hotloop.stats.gate import is_proven_slower, is_settled, slowdown, typical_s
from hotloop.stats.neighbours import least_alone
from hotloop.stats.quietness import is_busy
from hotloop.tune.compare.program import program

LEAST_STEPS = 5
"""Of all runs together: fewer say nothing of how far steps differ by themselves, and one in six of the same program
would fail (one step, which differ by 10%)."""
_FEW = (
    f"fewer than {LEAST_STEPS} steps were measured, too few to fail: give it more --seconds, or more --runs"
)
OTHER_SIZE = 1.1
"""Batches that vary by themselves (by tokens, by a rollout) have medians that are closer than this."""
_OPEN = "that is not proven to be beyond the margin, nor within it"


def gate_run(seen: Observation) -> GateRun:
    """Return the steady steps of a run, and what others took meanwhile."""
    series = seen.series[0]
    is_steady = np.frombuffer(series.kind, dtype=np.uint8) == StepKind.STEADY
    steady = np.frombuffer(series.duration_s, dtype="<f4")[is_steady]
    given = series.work.get("samples")
    samples = np.frombuffer(given, dtype="<f4")[is_steady] if given else ()
    waited = seen.monitors.mean("run_delay_ratio") if seen.monitors is not None else None
    stolen = seen.steal_share or 0.0
    foreign = seen.foreign_share
    return GateRun(
        steps_s=tuple(float(f"{one:.6g}") for one in steady),
        foreign_share=None if foreign is None else foreign + stolen,
        # A core that the hypervisor gave to another guest keeps its thread waiting; this kernel does not see that.
        delay_ratio=None if waited is None else waited + stolen * seen.machine.get("num_cores", 1),
        step_samples=float(np.median(samples)) or None if len(samples) else None,
        torch_version=seen.program.torch_version,
    )


def observed_run(
    name: str,
    words: tuple[str, ...],
    folder: Path,
    rule: StopRule,
    progress: Callable[[str], None],
    warn: Callable[[str], None] | None = None,
) -> GateRun:
    """Run a command once, as `program` does, and return its steady steps."""
    return gate_run(program(name, words, folder, rule, progress, warn).observation)


def judged(
    words: tuple[str, ...], then: ClassBaseline, runs: Sequence[GateRun], margin: float, other: str
) -> GateVerdict:
    """Return the verdict.

    A slowdown fails where it is proven of the runs without all that others can have cost them. Beside others the
    program passes only where it is not slower even than a baseline without all that others can have cost that.

    Args:
        words: of the command, for people.
        then: the baseline.
        runs: of now.
        margin: what is tolerated, relative.
        other: what else is said of the command; empty: nothing.

    Raises:
        HotloopError: no steady step was measured.
    """
    before, now = ([run for run in each if run.steps_s] for each in (then.runs, runs))
    if not before or not now:
        raise HotloopError(
            "no steady step was measured", "give each run more time: --seconds", ExitCode.PROGRAM_FAILED
        )
    found = slowdown(_measured(before), _measured(now))
    noisy = any(map(_is_noisy, (*before, *now)))
    least = _slowdown(_measured(before), _alone(now))
    outcome = _outcome(least, _slowdown(_alone(before), _measured(now)), margin, noisy=noisy)
    few = min(sum(map(len, _measured(each))) for each in (before, now)) < LEAST_STEPS
    if few and outcome is Outcome.FAILED:
        outcome = Outcome.NOT_JUDGED
    why = _why(before, now, found, least, margin) if noisy else _open(found, margin)
    why = "; ".join(filter(None, (why, _FEW if few else "")))
    settled = is_settled(found, margin) and outcome is not Outcome.NOT_JUDGED
    return GateVerdict(
        outcome=outcome,
        passed=outcome is Outcome.PASSED,
        proven=settled,
        slowdown=found,
        alone=least if any(map(_is_noisy, now)) else None,
        margin=margin,
        before_s=typical_s(_measured(before)),
        now_s=typical_s(_measured(now)),
        num_runs=(len(before), len(now)),
        sentence="; ".join(
            filter(None, (_compared(before, now, found, margin), why, other, *_unlike(before, now)))
        ),
        command=words,
        baseline_commit=then.commit,
        foreign_share=busiest_share(now),
        noisy=noisy,
    )


def busiest_share(runs: Sequence[GateRun]) -> float | None:
    """Return the share of the machine that others had in the busiest of the runs; None: not measured."""
    return max((run.foreign_share for run in runs if run.foreign_share is not None), default=None)


def _outcome(least: Ratio | None, most: Ratio | None, margin: float, *, noisy: bool) -> Outcome:
    if least is not None and is_proven_slower(least, margin):
        return Outcome.FAILED
    if not noisy or (most is not None and most.high < 1 + margin):
        return Outcome.PASSED
    return Outcome.NOT_JUDGED


def _measured(runs: Sequence[GateRun]) -> list[tuple[float, ...]]:
    return [run.steps_s for run in runs]


def _alone(runs: Sequence[GateRun]) -> list[tuple[float, ...]]:
    """Return the steps of runs as short as they can have been without others."""
    shares = [least_alone(run.delay_ratio) if _is_noisy(run) else 1.0 for run in runs]
    return [tuple(share * one for one in run.steps_s) for share, run in zip(shares, runs, strict=True)]


def _slowdown(before: Sequence[Sequence[float]], now: Sequence[Sequence[float]]) -> Ratio | None:
    """Return the slowdown; None: nothing is left of a run without others."""
    if any(not min(run) > 0 for run in (*before, *now)):
        return None
    return slowdown(before, now)


def _is_noisy(run: GateRun) -> bool:
    return is_busy(run.foreign_share)


def _compared(before: Sequence[GateRun], now: Sequence[GateRun], found: Ratio, margin: float) -> str:
    differs = found.low > 1 or found.high < 1
    says = ("slower" if found.ratio > 1 else "faster") if differs else "no difference is proven"
    times = [duration(typical_s(_measured(runs))) for runs in (before, now)]
    return (
        f"a step took {times[0]} and takes {times[1]}: {found.ratio:.2f} times as long "
        f"[{found.low:.2f}, {found.high:.2f}] ({says}; margin {percent(margin)})"
    )


def _unlike(before: Sequence[GateRun], now: Sequence[GateRun]) -> Iterator[str]:
    """Yield in what the runs differ beside their times: a gate holds steps to steps, whatever is in them."""
    then, here = ({run.torch_version for run in runs} - {None} for runs in (before, now))
    if then and here and then != here:
        yield f"the baseline was measured with torch {_listed(then)}, this with torch {_listed(here)}"
    sizes = [[run.step_samples for run in runs if run.step_samples is not None] for runs in (before, now)]
    if not all(sizes):
        return
    given = [median(each) for each in sizes]
    if max(given) > OTHER_SIZE * min(given):
        yield (
            f"the models of a step were given {given[0]:g} samples and are given {given[1]:g} now, "
            "so the times are of different work"
        )


def _listed(versions: Iterable[str | None]) -> str:
    return " and ".join(sorted(map(str, versions)))


def _open(found: Ratio, margin: float) -> str:
    return "" if is_settled(found, margin) else _OPEN


def _why(
    before: Sequence[GateRun], now: Sequence[GateRun], found: Ratio, least: Ratio | None, margin: float
) -> str:
    """Return what others can have done to the figures."""
    busiest, earlier = (busiest_share([run for run in runs if _is_noisy(run)]) for runs in (now, before))
    if busiest is None:
        return (
            f"other processes used up to {percent(earlier or 0.0)} of the CPU when the baseline was made, so its "
            "times may be too long: make it again with --update on a quiet machine"
        )
    used = f"other processes used up to {percent(busiest)} of the CPU"
    if least is not None and is_proven_slower(least, margin):
        return f"{used}, which explains no more than {found.ratio / least.ratio:.2f} times"
    if is_proven_slower(found, margin):
        return f"{used}, and the program waited for a core for so long that they can have made the difference"
    said = "but they cannot have made the program faster" if is_settled(found, margin) else f"and {_OPEN}"
    return f"{used}, {said}"
