"""The line that says how far a session is."""

from __future__ import annotations

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Trial
from hotloop.tune.session.standing import standing

FAILED = Failure(kind=FailureKind.CRASH, message="it failed")


def _trial(name: str, ratio: float) -> Trial:
    return Trial(
        key=name,
        candidate=Candidate(name=name),
        incumbent=(),
        outcome=FAILED,
        decision="accepted",
        ratio=Ratio(ratio, ratio, ratio),
    )


def test_it_says_what_is_believed_in_and_what_is_proven() -> None:
    trials = [_trial("a", 1.2), _trial("b", 1.5), _trial("c", 0.9)]
    plan = (Candidate(name="a"), Candidate(name="b"))
    assert standing((), trials[:1], None) == "1 trial done; nothing has helped so far"
    assert standing(plan, trials, None) == (
        "3 trials done; best so far: about 1.80x, not proven yet, with a + b"
    )
    assert standing(plan, (), None) == "0 trials done; expected to help, not measured yet: a + b"
    assert standing(plan, trials, 1.74) == "3 trials done; proven so far: 1.74x"
