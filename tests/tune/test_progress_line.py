"""The line that says how far a session is."""

from __future__ import annotations

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.tune.session.progress_line import progress_line

PLAN = (Candidate(name="a", params={"x": 1}), Candidate(name="b"))


LIKELY, PROVEN = Ratio(1.8, 1.5, 2.2), Ratio(1.74, 1.68, 1.8)


def test_it_says_what_is_believed_in_and_what_is_proven() -> None:
    assert progress_line((), 1, promising=None, proven=None) == "1 trial done; nothing has helped so far"
    assert (
        progress_line(PLAN, 3, promising=None, proven=None)
        == "3 trials done; looks promising, not confirmed: a + b"
    )
    said = "3 trials done; best so far: 1.80x [1.50, 2.20], not proven yet, with a + b"
    assert progress_line(PLAN, 3, promising=LIKELY, proven=None) == said
    said = "3 trials done; proven so far: 1.74x [1.68, 1.80]"
    assert progress_line(PLAN, 3, promising=LIKELY, proven=PROVEN) == said


def test_a_gain_of_memory_is_not_taken_for_speed() -> None:
    said = "3 trials done; proven so far: 1.74x [1.68, 1.80] in peak memory"
    assert progress_line(PLAN, 3, promising=LIKELY, proven=PROVEN, of_memory=True) == said


def test_what_screening_told_comes_before_the_first_trial() -> None:
    assert progress_line(PLAN, 0, promising=None, proven=None) == "looks promising, not confirmed: a + b"
