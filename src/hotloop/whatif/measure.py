"""Ceilings and predictions for an observed program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from hotloop.launch.deadline import Deadline
from hotloop.launch.isolation.decide import Isolation
from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.inference import Latency
from hotloop.model.observation import Coverage, Observation, ProgramRun
from hotloop.model.optimization import Candidate
from hotloop.whatif import read, unswitched
from hotloop.whatif.orders import BATCHES, batch_orders, ceiling_orders, knob_orders, whatif_config
from hotloop.whatif.run import Setting, run

NO_LOADER = "no DataLoader feeds the steps, so neither can be taken away"


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What one more run told."""

    ceilings: Ceilings | None
    predictions: tuple[Prediction, ...]
    batch: int | None
    by_batch: dict[int, Latency]
    """See `Inference`."""
    gaps: tuple[Coverage, ...]
    seconds: float
    num_starts: int
    """Of the program: a short one is started again until everything had its turn."""


def measure(
    observation: Observation,
    candidates: Sequence[Candidate],
    argv: Sequence[str],
    isolation: Isolation,
    deadline: Deadline,
    progress: Callable[[str], None],
    stdin: Path | None = None,
) -> WhatIf:
    """Run the program once more, within a time limit, and return what that told.

    Args:
        observation: of the program as it is, with its step and anchor.
        candidates: to predict the gain of.
        argv: the resolved command.
        isolation: what the run is kept from.
        deadline: of everything.
        progress: told of what is on.
        stdin: a copy of what the command reads.
    """
    assert observation.anchor is not None
    limits = ceiling_orders(observation)
    orders = [*limits, *knob_orders(candidates), *batch_orders(observation)]
    setting = Setting(
        argv=tuple(argv),
        environment=dict(os.environ),
        isolation=isolation,
        anchor=observation.anchor,
        shape=whatif_config(observation),
        limit_s=deadline.left_s(),
        time_over=deadline.no_time,
        stdin=stdin,
    )
    outcome = run(setting, orders, progress)
    switched = read.predictions(candidates, outcome)
    others = tuple(unswitched.predictions(observation, candidates, switched))
    missing = () if limits else (Coverage("ceilings", NO_LOADER),)
    return WhatIf(
        ceilings=read.ceilings(observation, outcome) if limits else None,
        predictions=(*switched, *others),
        batch=read.bench(outcome.reports, BATCHES).get("now"),
        by_batch=read.latencies(outcome),
        gaps=(*missing, *read.gaps(orders, outcome)),
        seconds=outcome.seconds,
        num_starts=len(outcome.reports),
    )


def with_whatif(observation: Observation, told: WhatIf) -> Observation:
    """Return the observation with what a further run told."""
    found = observation.inference
    return msgspec.structs.replace(
        observation,
        inference=None
        if found is None
        else msgspec.structs.replace(found, batch=told.batch, by_batch=told.by_batch),
        ceilings=told.ceilings,
        predictions=told.predictions,
        coverage=(*observation.coverage, *told.gaps),
        runs=(*observation.runs, *_runs(told)),
    )


def _runs(told: WhatIf) -> Iterator[ProgramRun]:
    """Return the runs that this was, as one: what came from which start is not kept apart."""
    if told.num_starts:
        starts = f", in {told.num_starts} starts" if told.num_starts > 1 else ""
        yield ProgramRun(
            told=("ceilings and predictions",),
            why=f"changes are switched on and off in it{starts}",
            wall_s=told.seconds,
        )
