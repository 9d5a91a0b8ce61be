"""From blocks with a knob on and off to ratios, ceilings and predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.inference import Latency
from hotloop.model.observation import Coverage, Observation
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.observe.steps.requests import latency
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.whatif.orders import BATCHES, CACHED, LOADER, TRANSFER
from hotloop.whatif.run import Outcome, Report

ONE_OFF_S = 0.5
"""Less is not named: starts of one program differ by as much (`tune.judge`)."""
METHOD = "switched on and off within one run of the program"


def log_ratios(report: Report, knob: str) -> list[float]:
    """Return log(step without / step with the knob) of each of its blocks, against those before and after it."""
    means = [(name, fmean(times)) for name, times in report.blocks if times]
    ratios = []
    for index, (name, during) in enumerate(means):
        if name != knob:
            continue
        around = means[max(0, index - 1) : index] + means[index + 1 : index + 2]
        off = [math.log(spent) for other, spent in around if other is None]
        if off:
            ratios.append(fmean(off) - math.log(during))
    return ratios


def ratio_of(reports: Sequence[Report], knob: str) -> Ratio | None:
    """Return the speed ratio of a knob; None: it was not measured, or not seen to act."""
    acted = [report for report in reports if report.effects.get(knob, (False, ""))[0]]
    blocks = [block for report in acted for block in log_ratios(report, knob)]
    return ratio_interval((blocks,)) if len(blocks) >= MIN_BLOCKS else None


def ceilings(observation: Observation, outcome: Outcome) -> Ceilings:
    """Return what was measured of the loop and of the loader alone."""
    assert observation.step is not None
    step_s, per_s = observation.step.median_s, observation.step.samples_per_s
    perfect = ratio_of(outcome.reports, CACHED)
    rate = Ratio(*(per_s * one for one in msgspec.structs.astuple(perfect))) if perfect and per_s else None
    loader = bench(outcome.reports, LOADER)
    rates = {int(workers): given for workers, given in loader.get("samples_per_s", {}).items()}
    now = rates.get(loader.get("num_workers", -1))
    return Ceilings(
        compute_samples_per_s=rate.ratio if rate else None,
        compute_low=rate.low if rate else None,
        compute_high=rate.high if rate else None,
        perfect_input=perfect,
        perfect_input_step_s=step_s / perfect.ratio if perfect else None,
        loader_samples_per_s=rates,
        num_workers=loader.get("num_workers"),
        perfect_device_step_s=per_s * step_s / now if per_s and now else None,
        transfer_s=bench(outcome.reports, TRANSFER).get("transfer_s"),
    )


def latencies(outcome: Outcome) -> dict[int, Latency]:
    """Return what a batch of each size takes of the model; empty: it was not tried."""
    times = bench(outcome.reports, BATCHES).get("times", {})
    return {
        size: latency(spent) for size, spent in sorted((int(size), spent) for size, spent in times.items())
    }


def bench(reports: Sequence[Report], name: str) -> dict[str, Any]:
    """Return what a bench gave; empty: it was not run."""
    return next((report.benches[name] for report in reports if name in report.benches), {})


def predictions(candidates: Sequence[Candidate], outcome: Outcome) -> tuple[Prediction, ...]:
    """Return what switching told of each candidate that could be switched."""
    found = []
    for candidate in candidates:
        ratio = ratio_of(outcome.reports, candidate.label)
        if ratio is not None:
            one_off = one_off_s(outcome.reports, candidate.label)
            found.append(
                Prediction(
                    name=candidate.name,
                    params=candidate.params,
                    ratio=ratio,
                    method=METHOD,
                    one_off_s=one_off,
                )
            )
    return tuple(found)


def one_off_s(reports: Sequence[Report], knob: str) -> float | None:
    """Return what the first steps with a knob took more than later ones; None where that is nothing worth naming."""
    for report in reports:
        later = [fmean(times) for name, times in report.blocks if name == knob and times]
        if knob in report.switched and later:
            seconds, steps = report.switched[knob]
            spent = seconds - steps * fmean(later)
            return spent if spent > ONE_OFF_S else None
    return None


def gaps(orders: Sequence[dict[str, Any]], outcome: Outcome) -> tuple[Coverage, ...]:
    """Return what was to be measured and was not, and why."""
    found = [Coverage("ceilings and predictions", gap) for gap in outcome.gaps]
    noisy = sum(report.num_noisy for report in outcome.reports)
    if noisy:
        what = "a quiet machine for ceilings and predictions"
        found.append(Coverage(what, f"others were busy during {noisy} of their blocks"))
    for order in orders:
        name = order["name"]
        for report in outcome.reports:
            on, evidence = report.effects.get(name, (True, ""))
            why = report.failed.get(name) or report.benches.get(name, {}).get("missing") or ""
            if why or not on:
                found.append(Coverage(name, why or evidence))
    return tuple(found)
