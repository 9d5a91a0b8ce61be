"""What candidates are expected to save."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.tune.goals.gains import Gains, prior

EXPECTED_SAVING = math.log(1.25)
"""Log ratio of peaks that a change made to save memory is expected to bring, for the order of trials alone: half
precision and recomputation are quoted at 30 to 50% less, of activations that are not all of the peak."""


def peaks_prior(candidates: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]) -> Gains:
    """Return what candidates are believed to save before anything was measured."""
    expected = {one.label: EXPECTED_SAVING if one.saves_memory else 0.0 for one in candidates}
    unbounded = [msgspec.structs.replace(one, max_gain=None) for one in candidates]
    return prior(unbounded, {}, conflicts, expected)
