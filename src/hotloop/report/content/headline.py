"""The verdict in one sentence, and what it saves."""

from __future__ import annotations

from hotloop.model.diagnosis import Bottleneck
from hotloop.model.observation import Observation
from hotloop.model.quantities import counted
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Contention, TuneResult
from hotloop.report.content.content import Headline, Savings
from hotloop.report.content.figures import as_fast
from hotloop.report.content.host_phases import host_sentence
from hotloop.report.content.ran_out import ran_out_told
from hotloop.stats.empty_plan import disturbed, why_empty
from hotloop.stats.quietness import MANY_DISTURBED, is_too_busy

FALLBACK_STEPS = 1000
"""Where no epoch was seen whole, savings are of so many steps."""
_POWER = ("gpu_power_w", "cpu_power_w")
"""Monitors of what the machine draws."""


def headline(
    observation: Observation | None, tuning: TuneResult | None, bottleneck: Bottleneck | None
) -> Headline:
    """Return the verdict of a session."""
    step = observation.step if observation else None
    if tuning is None:
        return Headline(
            sentence=_observed(observation, bottleneck),
            speedup=None,
            step_before_s=step.whole_s if step else None,
            step_after_s=None,
            learns_the_same=None,
        )
    confirmed = tuning.plan.speedup if tuning.plan.steps else None
    before_s = tuning.baseline.whole_s
    parity = tuning.plan.parity
    compared = parity is not None and parity.measured
    return Headline(
        sentence=_tuned(tuning, confirmed),
        speedup=confirmed,
        step_before_s=before_s,
        step_after_s=before_s / confirmed.ratio if confirmed else None,
        learns_the_same=parity.passed if compared and parity is not None else None,
    )


def _observed(observation: Observation | None, bottleneck: Bottleneck | None) -> str:
    if observation is not None and observation.out_of_memory is not None:
        return ran_out_told(observation.out_of_memory)
    if bottleneck is not None and observation is not None and is_too_busy(observation.foreign_share):
        return (
            f"This machine was too busy to judge: other processes used {observation.foreign_share:.0%} of the CPU. As "
            f"measured, the program is {bottleneck.sentence}."
        )
    if bottleneck is not None:
        return f"This program is {bottleneck.sentence}."
    if observation is not None and observation.step is not None:
        return "This program was observed; no single part takes most of its time."
    if observation is not None and observation.deep is not None and observation.deep.host is not None:
        return host_sentence(observation.deep.host)
    why = observation.why_no_step if observation is not None else None
    return f"No step was measured, so nothing can be said about this program{f': {why}' if why else ''}."


def _tuned(tuning: TuneResult, confirmed: Ratio | None) -> str:
    if confirmed is not None:
        num = len(tuning.plan.steps)
        return (
            f"The program runs {as_fast(confirmed)} with {counted(num, 'change')}, and {_learning(tuning)}."
            + _beside_others(tuning.contention)
        )
    return f"No change was proven faster: {why_empty(tuning)}."


def _beside_others(load: Contention) -> str:
    """Say that others used the machine, where they did: what their absence makes of the gain was not measured."""
    if load.num_disturbed <= MANY_DISTURBED * load.num_blocks:
        return ""
    return f" Other processes {disturbed(load)}: the gain may differ on an idle machine."


def _learning(tuning: TuneResult) -> str:
    parity = tuning.plan.parity
    if parity is None or not parity.measured:
        return "whether it learns the same was not measured"
    if parity.compared == "outputs":
        return "answers the same" if parity.passed else "does not answer the same"
    return "learns the same" if parity.passed else "does not learn the same"


def savings(
    observation: Observation | None,
    tuning: TuneResult | None,
    *,
    price_per_hour: float | None,
    power_price: float | None,
) -> Savings | None:
    """Return what the confirmed plan saves per epoch; None: nothing was confirmed.

    Args:
        observation: of the program as it was.
        tuning: the result.
        price_per_hour: of the machine.
        power_price: of a kilowatt-hour.
    """
    ratio = tuning.plan.speedup if tuning and tuning.plan.steps else None
    if tuning is None or ratio is None or not min(ratio.ratio, ratio.low, ratio.high) > 0:
        return None
    seen = observation.epoch_steps if observation else None
    num = seen or FALLBACK_STEPS
    before_s = num * tuning.baseline.whole_s
    saved_s, low_s, high_s = (before_s * (1 - 1 / one) for one in (ratio.ratio, ratio.low, ratio.high))
    energy = _energy_kwh(observation, saved_s)
    return Savings(
        num_steps=num,
        per_epoch=seen is not None,
        before_s=before_s,
        after_s=before_s - saved_s,
        saved_s=saved_s,
        low_s=low_s,
        high_s=high_s,
        money=_money(saved_s, energy, price_per_hour, power_price),
        energy_kwh=energy,
    )


def _energy_kwh(observation: Observation | None, saved_s: float) -> float | None:
    monitors = observation.monitors if observation else None
    if monitors is None:
        return None
    powers = [one.mean for name, one in monitors.metrics.items() if name.startswith(_POWER)]
    return sum(powers) * saved_s / 3.6e6 if powers else None


def _money(
    saved_s: float, energy: float | None, price_per_hour: float | None, power_price: float | None
) -> float | None:
    parts = []
    if price_per_hour is not None:
        parts.append(saved_s / 3600 * price_per_hour)
    if power_price is not None and energy is not None:
        parts.append(energy * power_price)
    return sum(parts) if parts else None
