"""The line that says how far a session is."""

from __future__ import annotations

from hotloop.model.optimization import Candidate
from hotloop.tune.session.standing import standing

PLAN = (Candidate(name="a", params={"x": 1}), Candidate(name="b"))


def test_it_says_what_is_believed_in_and_what_is_proven() -> None:
    assert standing((), 1, promising=None, proven=None) == "1 trial done; nothing has helped so far"
    assert (
        standing(PLAN, 3, promising=None, proven=None)
        == "3 trials done; looks promising, not confirmed: a + b"
    )
    said = "3 trials done; best so far: 1.80x, not proven yet, with a + b"
    assert standing(PLAN, 3, promising=1.8, proven=None) == said
    assert standing(PLAN, 3, promising=1.8, proven=1.74) == "3 trials done; proven so far: 1.74x"
