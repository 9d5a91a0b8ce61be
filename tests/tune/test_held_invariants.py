"""What a change has to leave as it was, however close its losses are."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest

from hotloop.model.learned import Learned, TrainingInvariants
from hotloop.model.optimization import Candidate, Numerics
from hotloop.tune.verdict.held_invariants import broken
from hotloop.tune.verdict.reference_losses import ReferenceLosses

ORIGINAL = TrainingInvariants(
    num_forwards=32,
    batches=tuple(float(number) for number in range(32)),
    num_random=32,
    num_buffers=4,
    num_moving=4,
    coarse_weights=0.002,
    zero_gradients=0.31,
    num_parameters=10,
    num_still=1,
    num_begun=15,
    num_carried=0,
    update_size=0.011,
    update_turn=0.94,
)


def changed(**fields: Any) -> TrainingInvariants:
    return msgspec.structs.replace(ORIGINAL, **fields)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            changed(batches=tuple(float(number % 8) for number in range(32))),
            "a new batch was seen in 25% of the first training forwards",
        ),
        (changed(num_random=0), r"random numbers were drawn \(dropout\) in 0% .*, in the original in 100%"),
        (changed(num_moving=0), r"0 of 4 buffers \(running statistics\) are updated, 4 in the original"),
        (
            changed(coarse_weights=1.0),
            "100% of the weights have the precision of 16 bits, 0% in the original",
        ),
        (
            changed(update_size=0.022),
            r"a step moves the weights by 0.022 of their size, by 0.011 in the original",
        ),
        (changed(update_size=0.0055), r"a step moves the weights by 0.0055 of their size"),
        (changed(update_turn=0.1), r"the cosine between .* and the next is 0.10, in the original 0.94"),
        (changed(num_still=4), "40% of the parameters do not move, 10% in the original"),
        (
            changed(num_carried=15),
            "100% of the backward calls add to gradients of the step before, 0% in the original",
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
        changed(batches=tuple(float(number % 30) for number in range(32))),
        changed(zero_gradients=0.33),
        changed(update_size=0.013, update_turn=0.84),
        changed(update_size=None, update_turn=None),
        changed(zero_gradients=0.1),
        changed(num_parameters=9, num_still=1),
        changed(num_parameters=0, num_still=0),
        changed(num_begun=3, num_carried=3),
        changed(num_still=0),
        changed(coarse_weights=None, zero_gradients=None),
        changed(num_forwards=8, batches=(1.0,) * 8, num_random=0),
    ],
)
def test_the_same_training_passes(seen: TrainingInvariants) -> None:
    assert broken([ORIGINAL], seen) is None


def test_what_the_program_does_by_itself_is_no_change() -> None:
    """A full-batch graph network sees one batch; a program may hold its weights in 16 bits."""
    alike = changed(
        batches=(1.0,) * 32,
        num_random=0,
        num_moving=0,
        coarse_weights=1.0,
        zero_gradients=0.9,
        update_size=0.5,
    )
    assert broken([alike], alike) is None
    assert broken([ORIGINAL, alike], alike) is None
    assert broken([], alike) is None


def test_updates_are_held_to_what_other_random_draws_make_of_them() -> None:
    drawn = [changed(update_size=0.011 * math.exp(by), update_turn=0.94 - by / 2) for by in (0.2, -0.3, 0.1)]
    far = changed(update_size=0.016, update_turn=0.7)
    assert broken([ORIGINAL], far, drawn) is None
    assert broken([ORIGINAL], far, drawn[2:]) is not None
    assert broken([ORIGINAL, drawn[1], drawn[0]], far) is None


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
