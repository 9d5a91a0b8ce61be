"""What the switched knobs predict, from effects and errors that were seen on real programs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from hotloop.model.optimization import Candidate, Numerics
from hotloop.stats.switching import SwitchFit
from hotloop.tune.search.predicted_plan import MIN_GAIN, believed, leaning, opportunity_cost, predicted_plan

CONFLICTS = {"kept": frozenset({"batched"}), "batched": frozenset({"kept"})}
LAYOUT = Candidate(name="layout", prior=1.09)
FUSED = Candidate(name="fused", prior=1.043, max_gain=1.061)
BATCHED = Candidate(name="batched", prior=1.012, max_gain=1.015)
KEPT = Candidate(name="kept", prior=1.013, max_gain=1.015)
BF16 = Candidate(name="bf16", numerics=Numerics.TOLERANCE)


def fit(**knobs: tuple[float, float]) -> SwitchFit:
    """Speed ratios and standard errors of their logs, of independent knobs."""
    return SwitchFit(
        terms=tuple((name,) for name in knobs),
        gains=tuple(math.log(ratio) for ratio, _ in knobs.values()),
        covariance=tuple(map(tuple, np.diag([error**2 for _, error in knobs.values()]).tolist())),
        df=100.0,
    )


def named(plan: Iterable[Candidate]) -> set[str]:
    return {one.name for one in plan}


GAN = fit(batched=(1.081, 0.032), layout=(1.039, 0.026), fused=(1.067, 0.038), kept=(1.041, 0.039))
"""A GAN's minute of switching; by hand its layout and the fused optimizer are 1.14 together."""


def test_a_part_of_the_step_cannot_gain_more_than_it_is() -> None:
    assert predicted_plan(GAN, [BATCHED], CONFLICTS) == ()
    assert believed(GAN, [BATCHED]).ratio(["batched"]).ratio < 1.03
    unbounded = Candidate(name="batched")
    assert predicted_plan(GAN, [unbounded], CONFLICTS) == (unbounded,)


def test_a_small_gain_that_was_expected_counts_where_measuring_tells_little() -> None:
    few = fit(fused=(1.02, 0.06))
    assert leaning(few, [LAYOUT], [FUSED], CONFLICTS) == (FUSED,)
    assert leaning(few, [LAYOUT], [Candidate(name="fused")], CONFLICTS) == ()


def test_what_much_is_expected_of_is_not_held_to_a_tenth() -> None:
    few = fit(half=(1.3, 0.11))
    much, nothing = (Candidate(name="half", prior=prior, numerics=Numerics.TOLERANCE) for prior in (1.8, 1.0))
    assert believed(few, [much]).ratio(["half"]).ratio > 1.25
    assert predicted_plan(few, [much], CONFLICTS) == (much,)
    assert believed(few, [nothing]).ratio(["half"]).ratio < 1.15
    assert predicted_plan(few, [nothing], CONFLICTS) == ()


def test_many_of_which_none_is_sure_are_worth_a_proof_together() -> None:
    knobs = [LAYOUT, FUSED, BATCHED, KEPT]
    weak = fit(layout=(1.03, 0.026), fused=(1.03, 0.038), batched=(1.03, 0.032), kept=(1.041, 0.039))
    assert predicted_plan(weak, knobs, CONFLICTS) == ()
    assert named(leaning(GAN, (), knobs, CONFLICTS)) == {"layout", "fused", "batched"}
    assert leaning(fit(layout=(1.03, 0.026)), (), [LAYOUT], CONFLICTS) == (), (
        "a single one is as unsure as it is"
    )
    assert leaning(fit(layout=(1.03, 0.026)), [FUSED], [LAYOUT], CONFLICTS) == (LAYOUT,)


@pytest.mark.parametrize(("error", "joins"), [(0.015, True), (0.04, False)])
def test_what_changes_numbers_is_to_be_surer(error: float, joins: bool) -> None:
    both = fit(bf16=(1.04, error), exact=(1.04, error))
    found = leaning(both, [LAYOUT], [BF16, Candidate(name="exact")], CONFLICTS)
    assert named(found) == ({"bf16", "exact"} if joins else {"exact"})


def test_what_a_plan_keeps_out_does_not_join_it() -> None:
    assert leaning(GAN, [KEPT], [BATCHED, FUSED], CONFLICTS) == (FUSED,)


@pytest.mark.parametrize(("pair", "likely"), [((LAYOUT, BF16), 0.09), ((BATCHED, KEPT), 0.03)])
def test_two_that_can_gain_little_cannot_help_one_another_much(
    pair: tuple[Candidate, Candidate], likely: float
) -> None:
    one, other = (candidate.label for candidate in pair)
    together = SwitchFit(
        terms=((one,), (other,), (one, other)),
        gains=(0.0, 0.0, 0.1),
        covariance=tuple(map(tuple, np.diag([0.02**2, 0.02**2, 0.03**2]).tolist())),
        df=60.0,
    )
    assert believed(together, pair).gain([one, other])[0] == pytest.approx(likely, abs=0.005)


NONE: dict[str, frozenset[str]] = {}


@pytest.mark.parametrize(
    ("seen", "knobs"),
    [
        (fit(bf16=(1.4, 0.02)), [BF16]),  # what is clear
        (fit(fused=(1.02, 0.06)), [Candidate(name="fused", prior=1.005, max_gain=1.01)]),  # can bring little
        (fit(batched=(1.3, 0.02), kept=(1.31, 0.02)), [Candidate(name="batched"), Candidate(name="kept")]),
    ],
)
def test_deciding_now_costs_little_where_more_would_change_little(
    seen: SwitchFit, knobs: list[Candidate]
) -> None:
    assert opportunity_cost(seen, knobs, CONFLICTS) < MIN_GAIN


@pytest.mark.parametrize(
    ("seen", "knobs"),
    [
        (fit(bf16=(1.04, 0.03)), [BF16]),  # not sure enough to be taken, and likelier to gain than not
        (fit(one=(1.0, 0.04)), [Candidate(name="one")]),
        (
            fit(one=(1.0, 0.02), two=(1.0, 0.02), three=(1.0, 0.02)),
            [Candidate(name=n) for n in ("one", "two", "three")],
        ),
    ],
)
def test_deciding_now_costs_much_where_much_is_open(seen: SwitchFit, knobs: list[Candidate]) -> None:
    assert opportunity_cost(seen, knobs, NONE) > MIN_GAIN


def test_knowing_exactly_leaves_nothing_to_lose() -> None:
    exact = fit(batched=(1.1, 0.0), kept=(0.9, 0.0))
    assert opportunity_cost(
        exact, [Candidate(name="batched"), Candidate(name="kept")], NONE
    ) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("slower", "error", "taken"),
    [(1.06, 0.05, "fused"), (1.06, 0.005, "foreach"), (1.09, 0.005, "fused")],
)
def test_of_variants_that_are_not_told_apart_the_expected_one_is_taken(
    slower: float, error: float, taken: str
) -> None:
    variants = [
        Candidate(name="optimizer", params={"implementation": name}, prior=prior)
        for name, prior in (("fused", 1.10), ("foreach", 1.05))
    ]
    labels = [one.label for one in variants]
    seen = SwitchFit(
        terms=tuple((label,) for label in labels),
        gains=(math.log(slower), math.log(1.08)),
        covariance=((error**2, 0.0), (0.0, error**2)),
        df=100.0,
    )
    sure = [msgspec.structs.replace(one, max_gain=1.2) for one in variants]
    assert [one.params["implementation"] for one in leaning(seen, [LAYOUT], sure, {})] == [taken]
