"""What the host's time costs on a device: nothing, as long as the device has work.

On a device-bound loop one `.item()` absorbs the whole step: it waits for work that has to be done anyway, and without
it the next call would wait. What can be won by sparing the host is the time in which the device idles, and no more.
"""

from __future__ import annotations

import dataclasses

from hotloop.diagnose.price.cost import Cost
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.observation import Observation
from hotloop.model.ratio import Ratio

HOST = "host"
"""The family of rules whose findings cost host time."""


def idle_share(observation: Observation) -> float | None:
    """Return the share of the step in which the busiest device does nothing; None: there is none, or not measured.

    The kernels' time is from the operators' window, the step from the light one, which no profiler slows.
    """
    operators = observation.deep.operators if observation.deep is not None else None
    if operators is None or observation.step is None:
        return None
    busy_s = operators.device_s if operators.busy_s is None else operators.busy_s
    return None if busy_s is None else min(1.0, max(0.0, 1.0 - busy_s / observation.step.whole_s))


def capped_by_idle(rule: Rule, symptom: Symptom, observation: Observation) -> Symptom:
    """Return a symptom that costs the step no more than the device idles; unpriced gains where that is not known."""
    if rule.family != HOST or observation.program.device == "cpu" or symptom.cost is None:
        return symptom
    idle = idle_share(observation)
    if idle is None:
        return dataclasses.replace(symptom, gain=None)
    evidence = f"{symptom.evidence}; the device idles for {idle:.0%} of the step"
    return dataclasses.replace(
        symptom, cost=_at_most(symptom.cost, idle), gain=_gain(symptom.gain, idle), evidence=evidence
    )


def _at_most(cost: Cost, share: float) -> Cost:
    return Cost(min(cost.share, share), min(cost.low, share), min(cost.high, share), cost.step_s)


def _gain(gain: Ratio | None, idle: float) -> Ratio | None:
    """Return a gain that is within Amdahl's bound for the device's idle time."""
    if gain is None:
        return None
    most = 1.0 / max(1e-2, 1.0 - idle)
    return Ratio(min(gain.ratio, most), min(gain.low, most), min(gain.high, most))
