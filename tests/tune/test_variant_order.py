"""The order in which variants of one optimization are tried."""

from __future__ import annotations

from hotloop.model.optimization import Candidate
from hotloop.tune.search.variant_order import in_turns


def test_what_is_different_comes_before_variants() -> None:
    workers = [Candidate(name="workers", params={"n": n}) for n in (1, 2, 4)]
    other = Candidate(name="other")
    assert in_turns([*workers, other]) == [workers[0], other, *workers[1:]]


def test_the_order_among_equals_is_kept() -> None:
    candidates = [Candidate(name=name) for name in "cab"]
    assert in_turns(candidates) == candidates
