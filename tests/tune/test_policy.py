"""What comes next, for a state and the time that is left."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.design.costs import Costs
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import prior
from hotloop.tune.search.actions import Compare, Confirm, Doing, Screen, Stop
from hotloop.tune.search.assess import Priors, assessed
from hotloop.tune.search.evidence import Compared, Evidence
from hotloop.tune.search.policy import next_action
from hotloop.tune.search.state import Prices, Proof, State
from hotloop.tune.search.status import Known, Status

HALF = Candidate(name="half", prior=1.5, numerics=Numerics.TOLERANCE)
LAYOUT = Candidate(name="layout", prior=1.1)
COMPILE = Candidate(name="compile", prior=1.25, one_off_s=45.0)
WORKERS = Candidate(name="workers", prior=1.3)
LITTLE = Candidate(name="little", prior=1.01, max_gain=1.02)


def prices(start_s: float = 5.0, round_s: float = 0.6, hold_s: float = 0.6) -> Prices:
    """Of a program that starts so soon."""
    return Prices(
        costs=Costs(start_s, round_s, num_cores=1),
        hold_s=hold_s,
        room=99,
        max_rounds=None,
        curve_rounds=2,
        grace_s=5.0,
        num_originals=1,
    )


def state(
    *candidates: Candidate, knobs: Sequence[Candidate] = (), measured: Sequence[Evidence] = ()
) -> State:
    """With what was measured."""
    before = prior(candidates, {}, {}, {})
    seen = {label for one in measured if isinstance(one, Compared) for label in one.after}
    known = tuple(
        Known(
            candidate=one,
            start_s=one.one_off_s or 0.0,
            switchable=one in knobs,
            num_measured=int(one.label in seen),
            status=Status.OPEN if one.label in seen else Status.UNTRIED,
        )
        for one in candidates
    )
    empty = State(known=known, speeds=before, evidence=(), plan=(), proof=Proof())
    return assessed(empty, Priors(before), measured)


def gained(candidate: Candidate, ratio: float, error: float = 0.02) -> Compared:
    """A measurement of one candidate."""
    return Compared(
        after=frozenset({candidate.label}), before=frozenset(), value=math.log(ratio), variance=error**2
    )


def named(steps: PlanSteps) -> set[str]:
    return {step.name for step in steps}


def _doing(action: Doing | Stop) -> Doing:
    assert not isinstance(action, Stop), action.why
    return action


def test_knobs_are_screened_together_where_that_brings_most_per_second() -> None:
    action = next_action(state(HALF, LAYOUT, COMPILE, knobs=[HALF, LAYOUT]), prices(), 600.0)
    assert isinstance(action, Screen)
    assert named(action.knobs) == {"half", "layout"}


def test_what_costs_much_is_compared_where_it_may_bring_more_per_second_than_the_rest() -> None:
    action = next_action(state(WORKERS, COMPILE, LITTLE, knobs=[LITTLE]), prices(), 600.0)
    assert isinstance(action, Confirm | Compare)
    assert "workers" in named(action.tried if isinstance(action, Compare) else action.plan)


def test_a_plan_is_proven_before_more_is_tried_where_time_is_ample() -> None:
    known = state(HALF, LAYOUT, measured=[gained(HALF, 1.4)])
    action = next_action(known, prices(), 600.0)
    assert isinstance(action, Confirm)
    assert named(action.plan) == {"half"}


def test_much_is_tried_before_little_is_proven_where_there_is_no_time_for_two_proofs() -> None:
    known = state(LAYOUT, WORKERS, measured=[gained(LAYOUT, 1.06)])
    action = next_action(known, prices(start_s=15.0), 250.0)
    assert isinstance(action, Compare)
    assert named(action.tried) == {"workers"}


def test_the_time_of_a_proof_is_kept_back() -> None:
    """A GPT that evaluates for 25 s before its first step: compilation took the time that a proof of 1.38x needed."""
    known = state(HALF, COMPILE, measured=[gained(HALF, 1.38)])
    for left_s in range(120, 900, 20):
        action = next_action(known, prices(start_s=27.0), float(left_s))
        if isinstance(action, Compare):
            spent_s = max(action.cost_s, action.ready_s)
            assert left_s - spent_s > 3 * prices(start_s=27.0).costs.set_s(2, 4)
        else:
            assert isinstance(action, Confirm) or left_s < 180


def test_nothing_that_was_not_measured_is_in_a_plan_of_several_steps() -> None:
    """`openmp_wait_policy` (0.80x) rode along untried into the proof of compilation (1.28x)."""
    waiting = Candidate(name="openmp_wait_policy", prior=1.3)
    for left_s in (60.0, 120.0, 300.0, 600.0):
        action = next_action(state(COMPILE, waiting, measured=[gained(COMPILE, 1.28)]), prices(), left_s)
        if isinstance(action, Confirm):
            assert named(action.plan) == {"compile"}


def test_a_step_that_is_likelier_to_cost_time_leaves_the_plan() -> None:
    whole = frozenset({"compile", "layout"})
    seen = [gained(COMPILE, 1.28), gained(LAYOUT, 1.08, 0.015)]
    assert named(state(COMPILE, LAYOUT, measured=seen).plan) == {"compile", "layout"}
    worse = [
        Compared(after=whole, before=frozenset(), value=math.log(1.1), variance=0.02**2),
        Compared(after=whole, before=frozenset({"compile"}), value=math.log(0.86), variance=0.02**2),
    ]
    assert named(state(COMPILE, LAYOUT, measured=[*seen, *worse]).plan) == {"compile"}


def test_a_step_that_is_not_shown_to_help_is_not_in_the_plan() -> None:
    seen = [gained(HALF, 1.4), gained(LAYOUT, 1.01, 0.015)]
    assert named(state(HALF, LAYOUT, measured=seen).plan) == {"half"}


def test_a_session_ends_early_only_where_nothing_is_worth_its_time() -> None:
    """It ended at 7 of 10 minutes, and said that three candidates were not tried for want of time."""
    tried = [Candidate(name=name, prior=1.08) for name in "abc"]
    known = state(HALF, *tried, measured=[gained(HALF, 1.5)])
    known = msgspec.structs.replace(
        known,
        proof=Proof(num_sets=3, log_gain=math.log(1.5), held=True, half_width=0.02),
        proven=math.log(1.5),
    )
    action = _doing(next_action(known, prices(), 180.0))
    assert isinstance(action, Compare)
    assert action.base == known.plan
    done = state(HALF, LITTLE, measured=[gained(HALF, 1.5), gained(LITTLE, 1.0, 0.004)])
    done = msgspec.structs.replace(done, proof=known.proof, proven=known.proven)
    stop = next_action(done, prices(), 180.0)
    assert isinstance(stop, Stop)
    assert stop.is_done
    assert "worth its time" in stop.why
    late = next_action(known, prices(), 20.0)
    assert isinstance(late, Stop)
    assert not late.is_done


def test_little_is_not_proven_at_length_while_much_is_untried() -> None:
    """Five of eight minutes went into proving 1.04x."""
    known = state(LAYOUT, WORKERS, HALF, measured=[gained(LAYOUT, 1.04, 0.01)])
    action = _doing(next_action(known, prices(start_s=12.0), 480.0))
    assert not isinstance(action, Confirm) or named(action.plan) != {"layout"}


def test_a_small_gain_is_not_written_as_none() -> None:
    action = _doing(next_action(state(LITTLE), prices(), 1200.0))
    assert 0 < action.value < 0.005
    assert "may bring 1.00" in action.why
    assert "may bring 1.00x" not in action.why


def test_every_action_says_why_in_one_line_however_many_steps_it_has() -> None:
    action = _doing(next_action(state(COMPILE, WORKERS), prices(), 600.0))
    assert "may bring 1." in action.why
    assert "takes about" in action.why
    knobs = [msgspec.structs.replace(LITTLE, name=f"knob_{at}") for at in range(8)]
    action = _doing(next_action(state(*knobs), prices(), 600.0))
    assert re.match(r"compare knob_\d, knob_\d, knob_\d and 5 more: may bring", action.why)


def test_a_proof_whose_sets_do_not_all_fit_promises_nothing() -> None:
    """On a graph network a proof of 2.9 min "may bring 1.04x" with 59 s left."""
    known = state(LAYOUT, measured=[gained(LAYOUT, 1.06)])
    for left_s in range(30, 400, 10):
        action = next_action(known, prices(start_s=15.0), float(left_s))
        if isinstance(action, Confirm) and action.value:
            assert action.cost_s <= left_s + prices().grace_s


def test_batch_sizes_are_compared_although_not_all_of_them_have_room_beside_one_another() -> None:
    sizes = [
        Candidate(name="larger_batch", params={"batch_size": 32 * factor}, samples=float(factor), prior=1.2)
        for factor in (8, 4, 2)
    ]
    action = next_action(state(*sizes), msgspec.structs.replace(prices(), room=2), 600.0)
    assert isinstance(action, Compare)
    assert len(action.tried) == 1
    assert len(_compared(state(*sizes)).tried) == 3


def _compared(known: State) -> Compare:
    action = next_action(known, prices(), 600.0)
    assert isinstance(action, Compare)
    return action
