"""The design of a screening: balanced, orthogonal, and nothing on together that cannot be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from hotloop.model.optimization import Candidate
from hotloop.tune.design.patterns import plackett_burman, schedule

from .simulated import candidates


@pytest.mark.parametrize("num", [1, 2, 3, 4, 7, 8, 11, 12, 19, 20])
def test_every_knob_is_on_in_half_of_the_holds_and_every_two_in_a_quarter(num: int) -> None:
    half = plackett_burman(num)
    signs = np.where(np.vstack((half, ~half)), 1, -1)
    assert len(half) % 4 == 0
    assert num < len(half) <= num + 8
    assert (signs.T @ signs == len(signs) * np.eye(num)).all()
    assert (signs.sum(axis=0) == 0).all()


def test_a_cycle_holds_each_pattern_and_its_opposite() -> None:
    knobs = candidates("a", "b", "c")
    cycle = schedule(knobs, {}, 8, seed=1)
    everything = {"a", "b", "c"}
    patterns = sorted(sorted(hold) for hold in cycle)
    assert patterns == sorted(sorted(everything - set(hold)) for hold in cycle)
    assert schedule(knobs, {}, 8, seed=1) == cycle
    assert schedule(knobs, {}, 8, seed=2) != cycle


def test_what_excludes_one_another_is_never_on_together_and_each_has_its_turn() -> None:
    variants = [Candidate(name="threads", params={"n": n}) for n in (1, 2)]
    knobs = [*variants, *candidates("a", "b")]
    holds = schedule(knobs, {"a": frozenset({"b"}), "b": frozenset({"a"})}, 64, seed=0)
    for one, other in (("a", "b"), (variants[0].label, variants[1].label)):
        assert not any({one, other} <= set(hold) for hold in holds)
        for label in (one, other):
            assert 0.2 < sum(label in hold for hold in holds) / len(holds) < 0.5


def test_interactions_of_two_are_not_mistaken_for_a_third_knob() -> None:
    """With the folded half, no product of two columns is another column."""
    half = plackett_burman(7)
    signs = np.where(np.vstack((half, ~half)), 1, -1)
    for one, other in combinations(range(7), 2):
        assert (signs.T @ (signs[:, one] * signs[:, other]) == 0).all()
