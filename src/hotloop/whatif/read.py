"""From blocks with a knob on and off to ratios, ceilings and predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from statistics import fmean
from typing import Any

import msgspec

from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.inference import Latency
from hotloop.model.observation import Coverage, Observation
from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.observe.steps.requests import latency
from hotloop.stats.pairs import DEFAULT_PRIOR_SD, MIN_BLOCKS
from hotloop.stats.switching import SwitchedHold, SwitchFit, fit_switches
from hotloop.whatif.orders import BATCHES, CACHED, LOADER, TRANSFER
from hotloop.whatif.run import Outcome, Report

ONE_OFF_S = 0.5
"""Less is not named: starts of one program differ by as much (`tune.judge`)."""
METHOD = "switched on and off within one run of the program"


def fitted(reports: Sequence[Report]) -> SwitchFit | None:
    """Return the regression over all blocks of the runs, of knobs that were seen to act; None: too few blocks."""
    fits = [_fitted(report) for report in reports]
    return reduce(SwitchFit.joined, [fit for fit in fits if fit is not None]) if any(fits) else None


def _fitted(report: Report) -> SwitchFit | None:
    acted = [name for name, (acted, _) in report.effects.items() if acted]
    blocks = [(name, fmean(times)) for name, times in report.blocks if times]
    holds = [SwitchedHold(frozenset([name] if name else ()), math.log(step_s)) for name, step_s in blocks]
    often = [name for name in acted if sum(name == knob for knob, _ in blocks) >= MIN_BLOCKS]
    return fit_switches(holds, often)


def ratio_of(fit: SwitchFit | None, knob: str) -> Ratio | None:
    """Return the speed ratio of a knob, as another process may have it; None: not measured, or not seen to act."""
    if fit is None or knob not in fit.knobs:
        return None
    return fit.ratio([knob], process_sd=DEFAULT_PRIOR_SD)


def ceilings(observation: Observation, outcome: Outcome) -> Ceilings:
    """Return what was measured of the loop and of the loader alone."""
    assert observation.step is not None
    step_s, per_s = observation.step.median_s, observation.step.samples_per_s
    perfect = ratio_of(fitted(outcome.reports), CACHED)
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
    fit = fitted(outcome.reports)
    for candidate in candidates:
        ratio = ratio_of(fit, candidate.label)
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
