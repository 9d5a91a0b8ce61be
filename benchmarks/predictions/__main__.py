"""`python -m benchmarks.predictions [--minutes M] [--only WORD]`: predicted against measured gains.

Run from the repository's root. Each program of `tests/faults` is observed, its candidates' gains are predicted as
`tune` does, and then all candidates are measured beside the original, in one set of arms that alternate. Finished rows
are kept in `benchmarks/results/predictions.jsonl`; a program that is in it is not done again, so the benchmark goes on
where it was stopped. `--page` writes the page from what is there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from tests.faults.library import CASES, Case

from benchmarks.predictions.page import Row, lines
from benchmarks.tune.page import write
from hotloop.launch.command import resolve
from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import plan_isolation
from hotloop.launch.isolation.scratch import scratch_root
from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Effect
from hotloop.observe.run.observe_command import LiveRun, observe
from hotloop.observe.run.stopping import StopRule
from hotloop.optimize.registry import all_optimizations
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.tune.design.block_length import shape_blocks
from hotloop.tune.design.candidates import Wishes, promising_first, propose
from hotloop.tune.executor import SetFailed, SetOrder, Steer
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.setting import Setting
from hotloop.whatif.measure import measure

ROWS = Path(__file__).parents[1] / "results" / "predictions.jsonl"
OBSERVE_S = 3.0
ROUNDS, BLOCK_S, TRIALS_S = 8, 0.5, 30.0
"""Of each arm: a trial of `tune` has up to eight blocks of 0.8 s. After that time the fewest rounds suffice."""
ARMS = 3
"""Candidates at once beside the original: with ten arms their blocks lie half a minute apart, and what was measured
had intervals of a third."""
SLOW, SLOW_SAMPLE = 0.4, 4
"""What is predicted to be slower than this is measured in one program of four: such trials take minutes."""
MAX_EPOCH_S = 1.0
"""Longer epochs are not timed whole: a set of ten arms would take minutes."""
PREDICT_S = 60.0
"""What `tune` gives it of a budget of ten minutes."""


def main() -> None:
    """Measure the programs that are not in the rows yet, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predictions", description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0, help="begin no further program after this (6)")
    parser.add_argument("--only", default="", help="programs whose name holds this word")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    given = parser.parse_args()
    began = time.monotonic()
    done = {row.case for row in rows()}
    cases = [case for case in CASES if given.only in case.name and case.name not in done]
    random.Random(0).shuffle(cases)  # a part of the library is then a fair part
    for case in cases if not given.page else ():
        if time.monotonic() - began > 60 * given.minutes:
            break
        try:
            _keep(list(_measured(case)))
        except Exception as error:  # one program that breaks must not take the others' time
            _keep([Row(case=case.name, label="-", why=f"{type(error).__name__}: {error}")])
    if given.page:
        write("predictions", "Predicted against measured gains", lines(rows(), len(CASES)))


def rows() -> list[Row]:
    """Return the rows that are there."""
    if not ROWS.is_file():
        return []
    return [msgspec.json.decode(line, type=Row) for line in ROWS.read_text().splitlines()]


def _keep(found: list[Row]) -> None:
    """Append a program's rows at once: one that was half done is done again."""
    with ROWS.open("a", encoding="utf-8") as file:
        file.write("".join(msgspec.json.encode(row).decode() + "\n" for row in found))
    for row in found:
        print(row.case, row.label, row.predicted, row.measured, row.why, flush=True)


def _measured(case: Case) -> Iterator[Row]:
    """Observe, predict and measure one program."""
    name, words = case.name, case.words
    with tempfile.TemporaryDirectory(prefix="predict-") as folder, contextlib.chdir(folder):  # type: ignore[attr-defined]
        Path("train.py").write_text(case.source(), encoding="utf-8")
        try:
            seen = observe(
                LiveRun(
                    words=words, rule=StopRule(seconds=OBSERVE_S), log=Path("log"), deadline=Deadline(90.0)
                ),
                lambda _: None,
            )
        except HotloopError as error:
            yield Row(case=name, label="-", why=error.message)
            return
        candidates, _ = propose(seen, all_optimizations(), Wishes())
        argv = resolve(words)
        isolation = plan_isolation(argv, Path.cwd(), scratch_root(), network=not seen.uses_network)
        told = measure(seen, candidates, argv, isolation, Deadline(PREDICT_S), lambda _: None)
        predicted = promising_first(candidates, told.predictions)
        methods = {(one.name, str(one.params)): one.method for one in told.predictions}
        wanted = []
        for one in predicted:
            why = _not_measured(name, one)
            if why:
                yield Row(case=name, label=one.label, predicted=one.predicted, why=why)
            else:
                wanted.append(one)
        for row in _trials(name, seen, wanted, argv):
            one = next(candidate for candidate in predicted if candidate.label == row.label)
            yield msgspec.structs.replace(
                row, method=methods.get((one.name, str(one.params)), ""), predict_s=told.seconds
            )


def _not_measured(case: str, candidate: Candidate) -> str:
    """Return why no trial is worth its time; empty: it is."""
    if candidate.predicted is None:
        return "no prediction"
    slow = candidate.predicted.high < SLOW and zlib.crc32(case.encode()) % SLOW_SAMPLE
    return "predicted to be far slower: measured in a sample of the programs only" if slow else ""


def _trials(name: str, seen: Observation, candidates: list[Candidate], argv: list[str]) -> Iterator[Row]:
    """Measure candidates beside the original, some at once; one that fails is measured no further."""
    executor = _executor(seen, argv)
    try:
        for begin in range(0, len(candidates), ARMS):
            yield from _together(name, executor, candidates[begin : begin + ARMS])
    finally:
        executor.close()


def _together(name: str, executor: DuetExecutor, left: list[Candidate]) -> Iterator[Row]:
    began = time.monotonic()
    order = SetOrder(plans=((), *((one,) for one in left)), max_rounds=ROUNDS)
    record = executor.run(order, _until(began + TRIALS_S, len(order.plans)))
    seconds = (time.monotonic() - began) / len(left)
    for index, one in enumerate(left, 1):
        if isinstance(record, SetFailed):
            yield Row(case=name, label=one.label, why=record.failure.message)
            continue
        arm, failure = record.arm(index), record.failure(index)
        why = failure.message if failure else _no_effect(arm.effects if arm else (), one)
        blocks = record.log_ratios((0,), index)
        yield Row(
            case=name,
            label=one.label,
            predicted=one.predicted,
            measured=ratio_interval((blocks,)) if len(blocks) >= MIN_BLOCKS and not why else None,
            trial_s=seconds,
            noisy=record.contention.num_noisy,
            why=why,
        )


def _until(end: float, num_arms: int) -> Steer:
    """Return what stops a set after a time, with the fewest rounds that have an interval."""
    return lambda rounds: () if len(rounds) >= MIN_BLOCKS and time.monotonic() > end else range(num_arms)


def _no_effect(effects: Sequence[Effect], candidate: Candidate) -> str:
    """Return why a candidate was not on; empty: it was."""
    seen = next((effect for effect in effects if effect.name == candidate.name), None)
    if seen is None:
        return "no effect: it was not seen to act"
    return "" if seen.on else f"no effect: {seen.evidence}"


def _executor(seen: Observation, argv: list[str]) -> DuetExecutor:
    assert seen.anchor is not None
    assert seen.step is not None
    setting = Setting(
        argv=tuple(argv),
        environment=dict(os.environ),
        isolation=plan_isolation(argv, Path.cwd(), scratch_root(), network=not seen.uses_network),
        anchor=seen.anchor,
        num_ranks=len(seen.ranks),
        step_s=seen.step.p95_s,
        startup_s=10.0,
        peak_bytes=seen.memory.peak_bytes,
    )
    epoch = seen.epoch_steps
    if epoch is not None and epoch * seen.step.median_s > MAX_EPOCH_S:
        epoch = None
    return DuetExecutor(setting, shape_blocks(seen, epoch, seen.total_steps, BLOCK_S, 1), lambda _: None)


if __name__ == "__main__":
    main()
