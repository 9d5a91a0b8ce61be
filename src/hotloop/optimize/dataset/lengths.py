"""The lengths of a data set's samples, where reading them does nothing else."""

from __future__ import annotations

import time
from typing import Any

from hotloop.model.quantities import listed
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.probe.instruments.sample_length import length_of
from hotloop.probe.record.generators import GlobalGenerators

MAX_READ_S = 120.0
"""Longer than that before the first step would be taken for a hang."""


def read_lengths(dataset: Any) -> list[int]:
    """Read every sample once; the global generators are put back.

    Raises:
        CannotKeep: they have no lengths, are all of one length, draw random numbers, or take too long to read.
    """
    before, begin_s = GlobalGenerators(), time.monotonic()
    lengths: list[int] = []
    try:
        for index in range(len(dataset)):
            length = length_of(dataset[index])
            if length is None:
                raise CannotKeep("its samples have no lengths")
            lengths.append(length)
            if time.monotonic() - begin_s > MAX_READ_S:
                raise CannotKeep(f"reading all samples takes longer than {MAX_READ_S:.0f} s")
        drawn = before.drawn()
    finally:
        before.restore()
    if drawn:
        raise CannotKeep(f"reading a sample draws random numbers from {listed(drawn)}")
    if len(set(lengths)) < 2:
        raise CannotKeep("its samples are all of one length")
    return lengths
