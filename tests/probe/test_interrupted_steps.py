"""An evaluation and the start of an epoch interrupt a step, once each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hotloop.probe.hook_points.loader import _patch_iter
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.events import Kind


class Loader:
    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


class LoaderIterator:
    def __init__(self) -> None: ...


def test_each_step_is_interrupted_once(tmp_path: Path) -> None:
    probe = Probe(ProbeConfig(folder=str(tmp_path)))
    boundary = probe.boundary
    _patch_iter(probe, Loader, LoaderIterator)
    assert list(Loader()) == [1, 2]
    assert boundary.num_interrupted == 1
    boundary.ended(Kind.EVALUATE, 0)
    assert (boundary.num_interrupted, boundary.num_evaluated) == (1, 1)
    boundary.steps = 1
    boundary.ended(Kind.EVALUATE, 0)
    boundary.ended(Kind.EVALUATE, 0)
    boundary.steps = 2
    boundary.ended(Kind.BACKWARD, 0)
    assert (boundary.num_interrupted, boundary.num_evaluated) == (2, 2)
