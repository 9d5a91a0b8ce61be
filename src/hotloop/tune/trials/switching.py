"""The real run of a screening: one process of the command in which knobs are switched by patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hotloop.launch.environment import PASSIVE, with_changes
from hotloop.model.optimization import Candidate
from hotloop.optimize.registry import get
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import Hold, SwitchOrder, SwitchRecord
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.trials.device_looks import DeviceLooks, Span
from hotloop.tune.trials.device_neighbours import DeviceNeighbours
from hotloop.tune.trials.setting import Setting
from hotloop.whatif import run as whatif
from hotloop.whatif.read import one_off_s

BUFFERED_HOLD_S = 0.9
"""Two workers keep four batches ahead by default: a shorter hold would be fed by what was made before it."""
PILOT_ROUNDS = 2
"""Of each knob alone: one foreign burst must not make a knob look hopeless."""
MAX_LEFT_OUT = 0.5
"""Of all holds: on a device that never becomes quiet disturbed ones count, and intervals are wider."""


def switch_knobs(
    order: SwitchOrder,
    setting: Setting,
    blocks: Blocks,
    progress: Callable[[str], None],
    enough: Callable[[SwitchRecord], bool],
    neighbours: DeviceNeighbours | None = None,
    compiled: Path | None = None,
) -> SwitchRecord:
    """Run the command with knobs switched until `enough` says so or the time is over.

    Holds in which something else disturbed a device are left out, as disturbed blocks of a set are.

    Args:
        order: the knobs, and what is on all the time.
        setting: what all processes of the session share.
        blocks: how long it warms up.
        progress: told of what is switched.
        enough: whether what was measured so far is.
        neighbours: watches the devices; None: there are none, or nothing can be seen of them.
        compiled: where the session keeps compiled code; None: it is thrown away.
    """
    environment = with_changes(setting.environment, PASSIVE) if order.passive else setting.environment
    run = whatif.Setting(
        argv=setting.argv,
        environment=with_plan(environment, order.base),
        isolation=setting.isolation,
        anchor=setting.anchor,
        shape=_shape(order, setting, blocks),
        limit_s=order.limit_s,
        stdin=setting.stdin,
        always=tuple(activation_orders(order.base)),
        compiled=compiled,
    )
    with DeviceLooks(neighbours).looking() as looks:
        outcome = whatif.run(
            run,
            _orders(order.knobs),
            progress,
            lambda report: enough(record_of([report], order.knobs, looks)),
        )
    return record_of(outcome.reports, order.knobs, looks, outcome.gaps)


def _shape(order: SwitchOrder, setting: Setting, blocks: Blocks) -> dict[str, Any]:
    hold_s = BUFFERED_HOLD_S if order.buffered else setting.hold_s
    steps = hold_steps(hold_s, setting.typical_s, setting.period_steps, setting.elapsed_s)
    return {
        "warm_steps": blocks.warm_steps,
        "num_steps": steps,
        "discard": 0,
        "rounds": PILOT_ROUNDS,
        "hold_steps": steps,
        "patterns": order.patterns,
    }


def hold_steps(hold_s: float, step_s: float, period_steps: int = 1, elapsed_s: float | None = None) -> int:
    """Return the steps that a pattern is held for: whole periods, where they are not much longer.

    Args:
        hold_s: wanted, on the clock.
        step_s: a step.
        period_steps: after how many steps something long comes again; 1: in no rhythm.
        elapsed_s: a step with all that lies between steps, where most holds have something of it; None: few have.
    """
    on_the_clock = max(2, round(hold_s / (elapsed_s or step_s)))
    if period_steps == 1:
        return on_the_clock
    if period_steps <= 2 * on_the_clock:
        return period_steps * max(1, round(on_the_clock / period_steps))
    # Of a longer period no hold has more than one.
    return min(max(2, round(hold_s / step_s)), period_steps)


def _orders(knobs: Sequence[Candidate]) -> list[dict[str, Any]]:
    return [
        get(knob.name).order(msgspec.to_builtins(knob.params), name=knob.label, knob=True) for knob in knobs
    ]


def record_of(
    reports: Sequence[whatif.Report], knobs: Sequence[Candidate], looks: DeviceLooks, gaps: Sequence[str] = ()
) -> SwitchRecord:
    """Return what the starts of the program gave, as one record."""
    holds = [held for report in reports for held in _holds(report)]
    quiet = [hold for hold, span in holds if not looks.disturbed(span)]
    num_disturbed = len(holds) - len(quiet)
    kept = quiet if num_disturbed <= MAX_LEFT_OUT * len(holds) else [hold for hold, _ in holds]
    effects: dict[str, tuple[bool, str]] = {}
    failed: dict[str, str] = {}
    settled: dict[str, int] = {}
    for report in reports:
        effects |= report.effects
        failed |= report.failed
        settled |= report.settled
    for gap in gaps:
        name, _, why = gap.partition(": ")
        if any(name == knob.label for knob in knobs) and name not in effects and why != whatif.TIME_OVER:
            failed.setdefault(name, why)
    costs = {knob.label: one_off_s(reports, knob.label) for knob in knobs}
    return SwitchRecord(
        holds=tuple(kept),
        effects=effects,
        from_start=tuple({name: None for report in reports for name in report.from_start}),
        failed=failed,
        settled=settled,
        one_off_s={label: spent for label, spent in costs.items() if spent is not None},
        num_noisy=sum(report.num_noisy for report in reports) + num_disturbed,
    )


def _holds(report: whatif.Report) -> Iterator[tuple[Hold, Span]]:
    """Yield each knob's blocks, then the patterns, with when they were."""
    alone = (Hold((name,) if name else (), times) for name, times in report.blocks)
    together = (
        Hold(on, times, whole_s)
        for (on, times), whole_s in zip(report.holds, report.hold_whole_s, strict=True)
    )
    for holds, spans in ((alone, report.block_spans), (together, report.hold_spans)):
        yield from (held for held in zip(holds, spans, strict=True) if held[0].steps_s)
