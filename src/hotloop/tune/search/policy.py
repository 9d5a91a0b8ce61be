"""What comes next: the action with the greatest expected increase of proven log gain per second.

The time of a proof is kept back from everything else. Proving what is known now takes a second proof later; it comes
first where what no longer fits then is expected to bring less than what a proof that is put off may lose.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotloop.model.quantities import duration
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.actions import Action, Compare, Confirm, Doing, Screen, Stop
from hotloop.tune.search.offers import MAX_SETS, compare_offers, keep_s, proof_offer, screen_offers, set_s
from hotloop.tune.search.state import Prices, Proof, State

WORTH = 0.001
"""Expected log gain below which an action is not worth its seconds: a tenth of the least gain that is claimed."""
PUT_OFF = 0.15
"""Share of what could be proven now that is lost where the proof is put off: starts and blocks take longer than
expected, other processes come, a program ends."""
NARROW = 0.05
"""Half-width of a proven plan's interval down to which time that nothing else needs is spent on it."""


def next_action(state: State, prices: Prices, left_s: float) -> Doing | Stop:
    """Return what comes next.

    Args:
        state: what is known.
        prices: what sets and holds take.
        left_s: the time that is left.
    """
    proof = proof_offer(state, prices, state.plan, state.proof) or _guess(state, prices)
    proof = proof if proof is not None and _fits(proof, prices, left_s) else None
    every = [*screen_offers(state, prices), *compare_offers(state, prices)]
    offers = [one for one in every if one.cost_s + _keep_s(one, state, prices) <= left_s]
    best = max(offers, key=lambda one: one.rate, default=None)
    if best is not None and best.value < WORTH:
        best = None
    if proof is not None and proof.value >= WORTH and (best is None or _comes_first(proof, offers, state, prices, left_s)):
        return _said(proof, proof)
    if best is not None:
        return _measuring(best, offers, state, prices, left_s)
    return _at_last(state, prices, every, left_s)


def _comes_first(
    proof: Confirm, offers: Sequence[Action], state: State, prices: Prices, left_s: float
) -> bool:
    """Whether a proof now loses less than one that is put off."""
    later_s = left_s - keep_s(prices, state.plan)
    lost = _worth_of(offers, later_s) - _worth_of(offers, later_s - proof.cost_s)
    return PUT_OFF * proof.value >= lost


def _worth_of(offers: Sequence[Action], seconds: float) -> float:
    """Return what can be added in so many seconds, the best per second first."""
    total, done = 0.0, set[str]()
    for one in sorted(offers, key=lambda one: -one.rate):
        labels = {step.label for step in (one.knobs if isinstance(one, Screen) else one.tried if isinstance(one, Compare) else ())}
        if labels & done or one.cost_s > seconds or one.value < WORTH:
            continue
        done |= labels
        seconds -= one.cost_s
        total += one.value
    return total


def _guess(state: State, prices: Prices) -> Confirm | None:
    """Return the proof of the most promising single candidate, measured or not, where no plan is known."""
    if state.plan or state.proven:
        return None
    offers = [
        proof_offer(state, prices, (one.candidate,), state.guesses.get(one.label, Proof()))
        for one in state.known
        if one.status.can_be_tried
    ]
    return max((one for one in offers if one is not None), key=lambda one: one.rate, default=None)


def _fits(proof: Confirm, prices: Prices, left_s: float) -> bool:
    return set_s(prices, proof.plan, 4) <= left_s


def _keep_s(offer: Action, state: State, prices: Prices) -> float:
    tried = offer.tried if isinstance(offer, Compare) else ()
    slowest = max(tried, key=lambda one: one.one_off_s or 0.0, default=None)
    return keep_s(prices, (*state.plan, *([slowest] if slowest else [])))


def _measuring(best: Screen | Compare, offers: Sequence[Action], state: State, prices: Prices, left_s: float) -> Doing:
    """Return an action with what it is told: when to end, and how long to wait."""
    kept_s = _keep_s(best, state, prices)
    other = max((one.rate for one in offers if not _overlap(one, best)), default=0.0)
    most_s = left_s - kept_s
    if isinstance(best, Screen):
        price = max(other, WORTH / max(best.cost_s, 1.0))
        best = msgspec.structs.replace(best, price=price, limit_s=min(most_s, 4 * best.cost_s))
    else:
        starts_s = best.cost_s - prices.costs.set_s(1, best.rounds)
        ready_s = min(best.value / other if other > 0 else most_s, most_s)
        best = msgspec.structs.replace(best, keep_s=kept_s, ready_s=max(1.5 * starts_s, ready_s))
    return _said(best, best)


def _overlap(one: Action, other: Action) -> bool:
    return type(one) is type(other)


def _at_last(state: State, prices: Prices, every: Sequence[Action], left_s: float) -> Doing | Stop:
    """Use what time is left: for the proof of what is promising, a narrower interval, or what needs no proof's time."""
    proof = state.proof
    if proof.held and proof.half_width > NARROW and proof.num_sets < MAX_SETS and set_s(prices, state.plan) <= left_s:
        why = f"confirm the plan again: its interval is ±{proof.half_width:.0%}"
        return Confirm(plan=state.plan, value=0.0, cost_s=set_s(prices, state.plan), why=why)
    unproven = [one for one in every if one.cost_s <= left_s and one.value >= WORTH]
    best = max(unproven, key=lambda one: one.rate, default=None)
    if best is not None and not state.plan and not state.proven:
        return _measuring(best, every, state, prices, left_s)  # type: ignore[arg-type]
    return Stop(why=_why_stop(every, left_s))


def _why_stop(every: Sequence[Action], left_s: float) -> str:
    worth = [one for one in every if one.value >= WORTH]
    if not worth:
        return "nothing that is left to try is worth its time"
    least = min(one.cost_s for one in worth)
    return f"{duration(max(0.0, left_s))} are left; what remains takes {duration(least)} and a proof"


def _said(action: Doing, of: Action) -> Doing:
    return msgspec.structs.replace(action, why=action.why or why(action))


def why(action: Doing) -> str:
    """Return the reason of an action in one line."""
    takes = f"takes about {duration(action.cost_s)}"
    may = f"may bring {2.718281828 ** action.value:.2f}x"
    if isinstance(action, Screen):
        return f"screen {_names(action.knobs)}{_beside(action.base)}: {may}, {takes}"
    if isinstance(action, Compare):
        return f"compare {_names(action.tried)}{_beside(action.base)}: {may}, {takes}"
    return f"confirm {_names(action.plan)}: {may}, {takes}"


def _beside(base: PlanSteps) -> str:
    return f" beside {_names(base)}" if base else ""


def _names(steps: PlanSteps) -> str:
    return ", ".join(step.label for step in steps)
