"""What comes next: the action with the greatest expected increase of proven log gain per second.

The time of a proof is kept back from everything else. Proving what is known now takes a second proof later; it comes
first where what no longer fits then is expected to bring less than what a proof that is put off may lose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from hotloop.model.quantities import counted, duration, listed
from hotloop.tune.confirm.set_pairs import MAX_SETS
from hotloop.tune.executor import PlanSteps, plan_key
from hotloop.tune.search.actions import Compare, Confirm, Doing, Screen, Stop, steps_of
from hotloop.tune.search.offers import (
    LEAST_ROUNDS,
    compare_offers,
    guess_offers,
    keep_s,
    proof_offers,
    screen_offers,
    set_s,
)
from hotloop.tune.search.state import Prices, State

LEAST_VALUE = 0.001
"""Expected log gain of all the time that is left, at an action's rate, below which the action is not worth its seconds:
a tenth of the least gain that is claimed."""
OVERRUN = 1.5
"""Times what it was expected to take, after which a screening ends: what is worth more of it is asked again then."""
PATIENCE = 3.0
"""Times what a set was expected to take, that its arms have to become warm however little they promise: starts take so
much longer beside neighbours."""
PUT_OFF = 0.15
"""Share of what could be proven now that is lost where the proof is put off: starts and blocks take longer than
expected, other processes come, a program ends."""
NAMED = 3
"""Of an action's steps, in its reason."""
SMALL = 0.01
"""Gain that would be written as none (1.00x, 0%) with the usual digits, or nearly so: it has one digit more."""
NARROW = 0.05
"""Half-width of a proven plan's interval down to which time that nothing else needs is spent on it."""


def next_action(state: State, prices: Prices, left_s: float) -> Doing | Stop:
    """Return what comes next, with its reason.

    Args:
        state: what is known.
        prices: what sets and holds take.
        left_s: the time that is left.
    """
    action = _chosen(state, prices, left_s)
    if isinstance(action, Stop) or action.why:
        return action
    return msgspec.structs.replace(action, why=_why(action, state))


def _chosen(state: State, prices: Prices, left_s: float) -> Doing | Stop:
    measuring: list[Doing] = [*screen_offers(state, prices), *compare_offers(state, prices)]
    until_s = left_s + prices.grace_s  # the last set of a proof is worth being a little late
    offers: list[Doing] = [one for one in measuring if one.cost_s + _keep_s(one, state, prices) <= until_s]
    offers += guess_offers(state, prices, until_s)
    offers = [one for one in _of_most_knobs(offers) if _is_worth(one, left_s)]
    best = max(offers, key=lambda one: one.rate, default=None)
    proofs = [one for one in proof_offers(state, prices, until_s) if _is_worth(one, left_s)]
    proof = max(proofs, key=lambda one: one.rate, default=None)
    if proof is not None:
        later_s = left_s - keep_s(state, prices, state.plan, state.gain_beside(state.plan))
        lost = _worth_of(offers, later_s) - _worth_of(offers, later_s - proof.cost_s)
        if best is None or (proof.rate >= best.rate and PUT_OFF * proof.value >= lost):
            return proof
    if best is not None:
        return _told(best, offers, left_s, _keep_s(best, state, prices))
    return _at_last(state, prices, left_s) or _unproven(state, prices, measuring, left_s)


def _of_most_knobs(offers: Sequence[Doing]) -> list[Doing]:
    """Return the actions without screenings that leave out knobs for which there is time: one more costs little."""
    most: dict[str, int] = {}
    for one in offers:
        if isinstance(one, Screen):
            most[plan_key(one.base)] = max(most.get(plan_key(one.base), 0), len(one.knobs))
    return [
        one for one in offers if not isinstance(one, Screen) or len(one.knobs) == most[plan_key(one.base)]
    ]


def _is_worth(action: Doing, left_s: float) -> bool:
    """Whether the time that is left would bring anything at the rate of an action."""
    return action.rate * max(left_s, action.cost_s) >= LEAST_VALUE


def _worth_of(offers: Sequence[Doing], seconds: float) -> float:
    """Return what can be added in so many seconds, the best per second first."""
    total, done = 0.0, set[str]()
    for one in sorted(offers, key=lambda one: -one.rate):
        labels = {step.label for step in steps_of(one)}
        if labels & done or one.cost_s > seconds:
            continue
        done |= labels
        seconds -= one.cost_s
        total += one.value
    return total


def _keep_s(offer: Doing, state: State, prices: Prices) -> float:
    """Return the time that a proof of what an action may find takes, if it finds something."""
    tried = steps_of(offer)
    known = [state.of(step) for step in tried]
    slowest = max(tried, key=lambda one: state.of(one).start_s, default=None)
    added = (
        (slowest,) if slowest is not None and isinstance(offer, Compare) and slowest not in state.plan else ()
    )
    num_originals = 1 + prices.num_perturbed if isinstance(offer, Compare) else prices.num_originals
    found = max(
        (one.mean + state.unsure(one) for one in known if one.candidate not in state.plan), default=0.0
    )
    return keep_s(
        state, prices, (*state.plan, *added), state.gain_beside(state.plan) + max(0.0, found), num_originals
    )


def _told(best: Doing, offers: Sequence[Doing], left_s: float, kept_s: float) -> Doing:
    """Return an action that knows when its time is better spent elsewhere."""
    others = [
        one for one in offers if not {s.label for s in steps_of(one)} & {s.label for s in steps_of(best)}
    ]
    price = max((one.rate for one in others), default=0.0)
    most_s = left_s - kept_s
    if isinstance(best, Screen):
        limit_s = min(most_s, OVERRUN * best.cost_s)
        return msgspec.structs.replace(best, price=max(price, LEAST_VALUE / left_s), limit_s=limit_s)
    if isinstance(best, Compare):
        worth_s = best.value / price if price > 0 else math.inf
        ready_s = min(most_s, max(PATIENCE * best.cost_s, worth_s))
        return msgspec.structs.replace(best, keep_s=kept_s, ready_s=ready_s)
    return best


def _at_last(state: State, prices: Prices, left_s: float) -> Doing | None:
    """Return one more set of a plan that nothing else needs the time of: what is open, or wide, or waits for quiet."""
    proof, plan = state.proof, state.plan
    seen = f"±{proof.half_width:.0%} after {counted(proof.num_sets, 'set')}"
    if plan and not proof.held and not proof.hopeless and proof.num_sets < MAX_SETS:
        why = f"confirm the plan again: it is not proven, {seen}"
    elif state.blocked:
        plan, why = state.blocked, "confirm the plan again: other processes may have left the machine"
    elif proof.held and proof.half_width > NARROW and proof.num_sets < MAX_SETS:
        why = f"confirm the plan once more: its interval is wide, {seen}"
    else:
        return None
    cost_s = set_s(state, prices, plan, rounds=LEAST_ROUNDS)
    return Confirm(plan=plan, value=0.0, cost_s=cost_s, why=why) if cost_s <= left_s else None


def _unproven(state: State, prices: Prices, measuring: Sequence[Doing], left_s: float) -> Doing | Stop:
    """Return what shows the way to a session with more time where nothing can be proven in this one."""
    worth = [one for one in measuring if _is_worth(one, left_s)]
    fitting = [one for one in worth if one.cost_s <= left_s]
    if fitting and not state.plan and not state.proven:
        return _told(max(fitting, key=lambda one: one.rate), fitting, left_s, 0.0)
    if not worth:
        return Stop(why="end: nothing that is left to try is worth its time", is_done=True)
    least_s = min(one.cost_s + _keep_s(one, state, prices) for one in worth)
    said = f"end: {duration(max(0.0, left_s))} left, and trying and proving anything more takes {duration(least_s)}"
    return Stop(why=said, is_done=False)


def _why(action: Doing, state: State) -> str:
    saved, ratio = -math.expm1(-action.value), math.exp(action.value)
    digits = 1 if saved < SMALL else 0
    gain = (
        f"save {saved:.{digits}%} of the peak"
        if state.objective.by_memory
        else f"bring {ratio:.{2 + digits}f}x"
    )
    said = f"may {gain}, takes about {duration(action.cost_s)}"
    names = _named(steps_of(action))
    if isinstance(action, Confirm):
        return f"confirm {names}: {said}"
    beside = f" beside {_named(action.base)}" if action.base else ""
    return f"{'screen' if isinstance(action, Screen) else 'compare'} {names}{beside}: {said}"


def _named(steps: PlanSteps) -> str:
    """Return the first of some steps, so that the reason stays one line; the action has all of them."""
    more = len(steps) - NAMED
    told = [step.label for step in steps[:NAMED]] + ([f"{more} more"] if more > 0 else [])
    return listed(told)
