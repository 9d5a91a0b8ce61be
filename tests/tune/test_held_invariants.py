"""What a change has to leave as it was, however close its losses are."""

from __future__ import annotations

import re

import msgspec
import pytest

from hotloop.model.learned import Learned, TrainingInvariants
from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.verdict.held_invariants import broken
from hotloop.tune.verdict.reference_losses import ReferenceLosses

ORIGINAL = TrainingInvariants(
    num_forwards=32,
    num_distinct=32,
    num_random=32,
    num_buffers=4,
    num_moving=4,
    coarse_weights=0.002,
    zero_gradients=0.31,
)


def changed(**fields: float) -> TrainingInvariants:
    return msgspec.structs.replace(ORIGINAL, **fields)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (changed(num_distinct=8), "a new batch was seen in 25% of the first training forwards"),
        (changed(num_random=0), r"random numbers were drawn \(dropout\) in 0% .*, in the original in 100%"),
        (changed(num_moving=0), r"0 of 4 buffers \(running statistics\) are updated, 4 in the original"),
        (
            changed(coarse_weights=1.0),
            "100% of the weights have the precision of 16 bits, 0% in the original",
        ),
        (changed(zero_gradients=0.4), "40% of the gradients are 0 or missing, 31% in the original"),
    ],
)
def test_a_different_training_is_refused_in_words(seen: TrainingInvariants, words: str) -> None:
    found = broken([ORIGINAL], seen)
    assert found is not None
    assert re.search(words, found)


@pytest.mark.parametrize(
    "seen",
    [
        ORIGINAL,
        changed(num_distinct=30),
        changed(zero_gradients=0.33),
        changed(zero_gradients=0.1),
        changed(coarse_weights=None, zero_gradients=None),
        changed(num_forwards=8, num_distinct=1, num_random=0),
    ],
)
def test_the_same_training_passes(seen: TrainingInvariants) -> None:
    assert broken([ORIGINAL], seen) is None


def test_what_the_program_does_by_itself_is_no_change() -> None:
    """A full-batch graph network sees one batch; a program may hold its weights in 16 bits."""
    alike = changed(num_distinct=1, num_random=0, num_moving=0, coarse_weights=1.0, zero_gradients=0.9)
    assert broken([alike], alike) is None
    assert broken([ORIGINAL, alike], alike) is None
    assert broken([], alike) is None


def test_it_is_refused_although_the_losses_are_the_same() -> None:
    curve = tuple(1 / (1 + step) for step in range(40))
    references = ReferenceLosses(
        originals=(curve, curve), perturbed=(curve,), invariants=(ORIGINAL, ORIGINAL)
    )
    step = Candidate(name="autocast_fp16", numerics=Numerics.TOLERANCE)
    assert references.check(Learned(losses=curve, invariants=ORIGINAL), [step]).passed
    seen = references.check(Learned(losses=curve, invariants=changed(zero_gradients=0.9)), [step])
    assert (seen.passed, seen.decided, seen.method) == (False, True, "invariants")
    assert "90% of the gradients" in seen.evidence
