"""The actions there are: what each may bring, and what it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hotloop.model.optimization import Numerics
from hotloop.stats.verdict import margin, needed_errors
from hotloop.tune.confirm.set_pairs import MAX_SETS, MIN_SETS
from hotloop.tune.design.costs import AGAIN
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps
from hotloop.tune.plan.exact_first import is_loose
from hotloop.tune.search.actions import Compare, Confirm, Screen
from hotloop.tune.search.evidence import SWITCHED_SD, shifted
from hotloop.tune.search.plateau import other_sizes
from hotloop.tune.search.state import Prices, Proof, State
from hotloop.tune.search.status import Known
from hotloop.tune.search.value import chance_above, increase

LEAST_ROUNDS, USUAL_ROUNDS = 4, 8
"""Of a set: two forwards, two backwards; beyond eight fresh processes tell more in the same time."""
PARITY_CHANCE = 0.8
"""That something that changes the numbers learns the same, where nothing is known of it."""
HOLDS = (16, 32, 64, 128, 256, 512)
"""Of a screening, beyond those of each knob alone."""
PILOT_HOLDS = 4
MAX_ARMS = 8
REPEATS = (1, 2, 4, 8)
"""Pairs of processes over which it is asked what each is worth: one alone may show too little (the KG(*) policy)."""
SEEDS = 3
"""Candidates that sets of arms are grown around."""


def proof_offer(
    state: State, prices: Prices, plan: PlanSteps, proof: Proof, until_s: float
) -> Confirm | None:
    """Return what proving a plan may bring, in as many sets as bring most per second and fit; None: nothing."""
    mean, deviation = state.gains.gain({step.label for step in plan})
    more = mean - state.proven
    if not plan or proof.held or proof.hopeless or more <= 0:
        return None
    chance = math.prod(_parity_chance(state.of(step)) for step in plan) if proof.parity is None else 1.0
    best: Confirm | None = None
    for num in range(max(MIN_SETS, proof.num_sets + 1), MAX_SETS + 1):
        to_come = num - proof.num_sets
        held = _chance_held(state, proof, mean, deviation, num)
        first_s = sum(state.of(step).start_s for step in plan if not state.of(step).num_measured)
        first_s += set_s(state, prices, plan, prices.num_originals)
        cost_s = first_s + (to_come - 1) * set_s(state, prices, plan, rounds=LEAST_ROUNDS + 2)
        offer = Confirm(plan=plan, value=chance * held * more, cost_s=cost_s)
        if cost_s <= until_s and (best is None or offer.rate > best.rate):
            best = offer
    return best


def proof_offers(state: State, prices: Prices, until_s: float) -> Iterator[Confirm]:
    """Yield the proof of the plan, and those that were begun: one that is nearly proven is not left for more."""
    begun = [(plan, proof) for plan, proof in state.begun if plan != state.plan]
    for plan, proof in ((state.plan, state.proof), *begun):
        offer = proof_offer(state, prices, plan, proof, until_s)
        if offer is not None:
            yield offer


def guess_offers(state: State, prices: Prices, until_s: float) -> Iterator[Confirm]:
    """Yield proofs of single candidates that nothing shows to help yet: of one alone that is all that is needed."""
    if state.plan or state.proven:
        return
    for one in state.known:
        if one.status.can_be_tried and not other_sizes(state, one):
            proof = state.guesses.get(one.label, Proof())
            offer = proof_offer(state, prices, (one.candidate,), proof, until_s)
            if offer is not None:
                yield offer


def _chance_held(state: State, proof: Proof, mean: float, deviation: float, num: int) -> float:
    """Return the chance that the interval after so many sets is above what counts as the same."""
    to_come = num - proof.num_sets
    if to_come <= 0:
        return 0.0
    pair = state.error
    share = to_come / num
    expected = (1 - share) * proof.log_gain + share * mean
    spread = share * math.hypot(deviation, pair / math.sqrt(to_come))
    return chance_above(expected, spread, _edge(state, num))


def set_s(
    state: State, prices: Prices, plan: PlanSteps, num_originals: int = 1, rounds: int | None = None
) -> float:
    """Return what one set of a proof takes: the first ones hold more originals, for the floor."""
    again_s = AGAIN * sum(state.of(step).start_s for step in plan)
    usual = min(USUAL_ROUNDS, max(LEAST_ROUNDS, prices.costs.telling_rounds(num_originals + 1)))
    usual = usual if _learns_the_same(state, plan) else max(usual, prices.curve_rounds)
    rounds = rounds or usual
    # Where few losses are a curve the exact steps of a plan are an arm of their own (`confirm.confirmation`).
    exact = (
        rounds > LEAST_ROUNDS and rounds == prices.curve_rounds and any(is_loose(step) for step in plan[1:])
    )
    return prices.costs.set_s(num_originals + exact + 1, prices.rounds(rounds), again_s)


def _learns_the_same(state: State, plan: PlanSteps) -> bool:
    """Whether the first set of a plan's proof has told that: later ones need no curve of losses."""
    return plan == state.plan and state.proof.parity is not None


def keep_s(state: State, prices: Prices, plan: PlanSteps, gain: float, num_originals: int = 1) -> float:
    """Return the time that is kept back for the proof of a plan.

    Args:
        state: what pairs of processes show.
        prices: what sets take.
        plan: with what takes longest to start.
        gain: its log gain, as far as it is known: a small one beside much noise takes more sets.
        num_originals: of its first set.
    """
    first_s = set_s(state, prices, plan, num_originals, max(LEAST_ROUNDS, prices.curve_rounds))
    return first_s + (_sets_needed(state, gain) - 1) * set_s(state, prices, plan, rounds=LEAST_ROUNDS)


def _sets_needed(state: State, gain: float) -> int:
    """Return after how many sets the interval around a log gain is expected to be above what counts as the same."""
    return next((num for num in range(MIN_SETS, MAX_SETS) if gain > _edge(state, num)), MAX_SETS)


def _edge(state: State, num: int) -> float:
    """Return the estimate from which a plan is proven after so many sets."""
    half = needed_errors(num, MIN_SETS, MAX_SETS) * state.error / math.sqrt(num)
    least = state.least
    return (math.log(margin(state.floor) + 1) if least is None else least) + half


def screen_offers(state: State, prices: Prices) -> Iterator[Screen]:
    """Yield screenings of all knobs that can be switched, beside the original and beside parts of the plan."""
    fixed = tuple(step for step in state.plan if not state.of(step).switchable)
    strong = sorted((step for step in state.plan if step not in fixed), key=lambda s: -state.of(s).mean)
    for num in range(min(3, len(strong) + 1)):
        base = (*fixed, *strong[:num])
        knobs = [one for one in state.known if _can_be_switched(state, one, base)]
        slower = state.gain_beside(state.plan, base)
        ranked = sorted(knobs, key=lambda one: -_gain(state, one, SWITCHED_SD, slower))
        for many in {len(ranked), min(len(ranked), 4), min(len(ranked), 2)} - {0}:
            yield from _screens(state, prices, base, ranked[:many])


def _screens(state: State, prices: Prices, base: PlanSteps, knobs: Sequence[Known]) -> Iterator[Screen]:
    start_s = prices.costs.start_s(1) + AGAIN * sum(state.of(step).start_s for step in base)
    start_s += sum(one.start_s for one in knobs)
    for num in HOLDS:
        if num < 2 * len(knobs) + 8:
            continue
        cost_s = start_s + (PILOT_HOLDS * len(knobs) + num) * prices.hold_s
        value = together(state, knobs, screen_error(state, num), base)
        steps = tuple(one.candidate for one in knobs)
        yield Screen(
            base=base,
            knobs=steps,
            limit_s=cost_s,
            price=0.0,
            value=value,
            cost_s=cost_s,
            passive=state.passive,
        )


def screen_error(state: State, num_holds: int) -> float:
    """Return the standard deviation of what so many holds show of a knob that is on in half of them."""
    return math.hypot(2 * state.hold_sd / math.sqrt(num_holds), SWITCHED_SD)


def compare_offers(state: State, prices: Prices) -> Iterator[Compare]:
    """Yield sets of arms, each grown around a candidate by what makes it bring more per second."""
    base = state.plan if prices.room >= 3 else ()
    able = [one for one in state.known if _can_be_an_arm(one, base)]
    alone = sorted(
        (_compared(state, prices, base, [one, *_beside(state, prices, base, one)]) for one in able),
        key=lambda offer: -offer.rate,
    )
    for seed in alone[:SEEDS]:
        yield from _grown(state, prices, base, seed, [one for one in able if one.candidate not in seed.tried])


def _beside(state: State, prices: Prices, base: PlanSteps, one: Known) -> list[Known]:
    """Return what is measured with a candidate wherever there is room for it: the other sizes of a batch."""
    return other_sizes(state, one)[: max(0, prices.room - prices.num_originals - bool(base) - 1)]


def _grown(
    state: State, prices: Prices, base: PlanSteps, seed: Compare, others: Sequence[Known]
) -> Iterator[Compare]:
    """Yield a set, and what it becomes with each candidate that makes it bring more per second."""
    best, members, left = seed, [state.of(step) for step in seed.tried], list(others)
    yield best
    while left and len(members) < MAX_ARMS:
        offers = [(_compared(state, prices, base, [*members, one]), one) for one in left]
        offer, one = max(offers, key=lambda pair: pair[0].rate)
        if offer.rate <= best.rate:
            break
        best = offer
        members.append(one)
        left.remove(one)
        yield best


def _compared(state: State, prices: Prices, base: PlanSteps, tried: Sequence[Known]) -> Compare:
    plans = sum(1 + bool(_rivals(state, one, base)) for one in tried)
    num_arms = prices.num_originals + bool(base) + plans
    rounds = prices.rounds(min(USUAL_ROUNDS, max(LEAST_ROUNDS + 1, prices.costs.telling_rounds(num_arms))))
    one_off_s = sum(one.start_s for one in tried) + AGAIN * (len(tried) + 1) * sum(
        state.of(step).start_s for step in base
    )
    cost_s = math.inf if num_arms > prices.room else prices.costs.set_s(num_arms, rounds, one_off_s)
    return Compare(
        base=base,
        tried=tuple(one.candidate for one in tried),
        rounds=rounds,
        keep_s=0.0,
        ready_s=0.0,
        value=_compare_value(state, tried, base),
        cost_s=cost_s,
        passive=state.passive,
    )


def _compare_value(state: State, tried: Sequence[Known], base: PlanSteps) -> float:
    """A single pair of processes may show too little of a candidate; a share of what several would is worth as much."""
    return max(together(state, tried, state.error / math.sqrt(num), base) / num for num in REPEATS)


def together(state: State, tried: Sequence[Known], error: float, base: PlanSteps) -> float:
    """Return what measuring several candidates adds; of those that exclude one another what the best one may add."""
    slower = state.gain_beside(state.plan, base)
    alone = sorted(((_gain(state, one, error, slower), one) for one in tried), key=lambda pair: -pair[0])
    total, taken = 0.0, list[Known]()
    for gain, one in alone:
        rivals = [other.mean for other in taken if exclude(one.candidate, other.candidate, state.conflicts)]
        total += _gain(state, one, error, slower, max([0.0, *rivals])) if rivals else gain
        taken.append(one)
    return total


def _gain(state: State, one: Known, error: float, slower: float, rival: float = 0.0) -> float:
    in_plan = one.candidate in state.plan
    rival = max(rival, state.rival(one.candidate))
    deviation, error = state.unsure(one), shifted(one.mean, error, slower)
    return _parity_chance(one) * increase(one.mean, deviation, error, in_plan=in_plan, rival=rival)


def _parity_chance(one: Known) -> float:
    loose = one.candidate.numerics is not Numerics.EXACT
    return PARITY_CHANCE if loose and one.parity is None else 1.0


def _can_be_switched(state: State, one: Known, base: PlanSteps) -> bool:
    beside = one.candidate in base or state.displaced(one.candidate, base)
    return one.switchable and one.status.can_be_tried and not beside


def _can_be_an_arm(one: Known, base: PlanSteps) -> bool:
    return one.status.can_be_tried and one.candidate not in base


def _rivals(state: State, one: Known, base: PlanSteps) -> PlanSteps:
    """Return the steps of a base that a candidate may hinder: it gets an arm without them, too."""
    names = state.interactions.get(one.candidate.name, frozenset())
    return tuple(step for step in base if step.name in names)
