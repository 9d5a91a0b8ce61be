"""What came of a goal: every configuration that was measured, and the chosen one among them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from hotloop.model.goal import Aim, Cost, Goal, Point, Reached
from hotloop.model.observation import Observation
from hotloop.tune.confirm.standing import Standing
from hotloop.tune.executor import RanSet

KWH = 1000 * 3600.0
"""Watt seconds."""
STEPS = 1000
"""Of which the cost is told where nobody knows the length of an epoch."""
POWER = ("gpu_power_w", "cpu_power_w")
"""How the names of the sensors begin that add up to what a machine takes, as far as it tells."""


def reached(
    observation: Observation, aim: Aim, sets: Sequence[RanSet], proven: Standing | None
) -> Reached | None:
    """Return what came of a goal; None: speed alone was asked for.

    Args:
        observation: of the program as it is.
        aim: what was asked for.
        sets: all that were run.
        proven: the plan; None: nothing was proven.
    """
    if (
        not aim.counts_memory
        and aim.goal is Goal.SPEED
        and aim.price_per_hour is None
        and aim.power_price is None
    ):
        return None
    cost = _cost(observation, aim, proven)
    if not aim.counts_memory:
        return Reached(cost=cost)
    points = tuple(_points(observation, sets, proven))
    original = next((one.peak_bytes for one in points if not one.names), None)
    after = proven.goal.peak_bytes if proven is not None and proven.goal is not None else None
    shown = after if proven is not None else original
    fits = None if aim.fit_bytes is None or shown is None else shown <= aim.fit_bytes
    methods = [found[1] for one in sets if (found := one.record.peak(0)) is not None]
    return Reached(
        method=methods[0] if methods else "",
        peak_bytes=(original, after),
        memory=proven.memory if proven is not None else None,
        fits=fits,
        smallest=min(points, key=lambda one: one.peak_bytes, default=None),
        points=points,
        cost=cost,
    )


def _points(observation: Observation, sets: Sequence[RanSet], proven: Standing | None) -> Iterator[Point]:
    """Yield what was measured, the largest peak first; of the proven plan what its proof says."""
    assert observation.step is not None
    step_s = observation.step.whole_s
    chosen = frozenset(step.label for step in proven.plan) if proven is not None else frozenset()
    points = []
    for names, told in _measured(sets):
        is_chosen = bool(names) and frozenset(names) == chosen
        log = fmean(log for log, _ in told)
        if is_chosen and proven is not None and proven.total.ratio is not None:
            log = math.log(proven.total.ratio.ratio)
        points.append(
            Point(
                names=names,
                step_s=step_s * math.exp(-log),
                peak_bytes=max(peak for _, peak in told),
                num_sets=len(told),
                optimal=False,
                chosen=is_chosen,
            )
        )
    for point in sorted(points, key=lambda one: (-one.peak_bytes, one.step_s)):
        better = any(_beats(other, point) for other in points)
        yield msgspec.structs.replace(point, optimal=not better)


def _measured(sets: Sequence[RanSet]) -> Iterator[tuple[tuple[str, ...], list[tuple[float, int]]]]:
    """Yield each configuration, whatever the order of its steps, with its log gain and its peak in each set."""
    names, seen = dict[frozenset[str], tuple[str, ...]](), dict[frozenset[str], list[tuple[float, int]]]()
    for one in sets:
        for at, plan in enumerate(one.order.plans):
            found = one.record.peak(at)
            originals = one.record.originals(one.order)
            if found is None or not originals or at in one.order.perturbed:
                continue
            logs = one.record.log_ratios(originals, at) if plan else (0.0,)
            if logs:
                labels = tuple(step.label for step in plan)
                names.setdefault(frozenset(labels), labels)
                seen.setdefault(frozenset(labels), []).append((fmean(logs), found[0]))
    for key, told in seen.items():
        yield names[key], told


def _beats(one: Point, other: Point) -> bool:
    """Whether a point is as good in both and better in one."""
    as_good = one.step_s <= other.step_s and one.peak_bytes <= other.peak_bytes
    return as_good and (one.step_s < other.step_s or one.peak_bytes < other.peak_bytes)


def _cost(observation: Observation, aim: Aim, proven: Standing | None) -> Cost | None:
    """Return what an epoch costs; None: no price was given, or what takes power was not measured."""
    assert observation.step is not None
    watts = _watts(observation) if aim.power_price is not None else None
    if aim.price_per_hour is None and watts is None:
        return None
    per_s = (aim.price_per_hour or 0.0) / 3600 + (watts or 0.0) * (aim.power_price or 0.0) / KWH
    num = observation.epoch_steps or STEPS
    before = per_s * num * observation.step.whole_s
    ratio = proven.total.ratio if proven is not None else None
    said = "price of the machine x time" if aim.price_per_hour is not None else ""
    if watts is not None:
        said += f"{' + ' * bool(said)}price of power x {watts:.0f} W of the observed run"
    elif aim.power_price is not None:
        said += "; power is left out: this machine has no power sensor that can be read"
    return Cost(
        unit="epoch" if observation.epoch_steps else f"{STEPS} steps",
        before=before,
        after=before / ratio.ratio if ratio is not None else None,
        watts=watts,
        method=said,
    )


def _watts(observation: Observation) -> float | None:
    """Return what the machine took while the program was observed, of all sensors; None: it has none."""
    monitors = observation.monitors
    if monitors is None:
        return None
    found = [one.mean for name, one in monitors.metrics.items() if name.startswith(POWER)]
    return math.fsum(found) if found else None
