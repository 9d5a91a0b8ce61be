"""An optimizer that calls another one in its step: ZeroRedundancyOptimizer, and wrappers like Lookahead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotloop.observe.decode.spans import Timeline
from hotloop.probe.hook_points.step_hooks import step_hooks
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig


class _Slots:
    last: Any = staticmethod(lambda: None)
    last_number = 0

    def of(self, optimizer: int) -> int:
        return optimizer


OUTER, INNER = 0, 1


def test_the_outer_step_lasts_from_its_own_beginning_and_ends_the_step(tmp_path: Path) -> None:
    """The time in it that is not the inner one's was `other`, and each step left a span open for good."""
    probe = Probe(ProbeConfig(folder=str(tmp_path)))
    before, after = step_hooks(probe, _Slots())
    for _ in range(3):
        before(OUTER, (), {})
        before(INNER, (), {})
        after(INNER, (), {})
        after(OUTER, (), {})
    assert probe.boundary.steps == 3
    probe.recorder.flush()
    timeline = Timeline(tmp_path, os.getpid())
    timeline.update()
    inner, outer = timeline.spans[-2:]
    assert (inner.slot, inner.depth, outer.slot, outer.depth) == (INNER, 1, OUTER, 0)
    assert outer.begin_s < inner.begin_s < inner.end_s < outer.end_s


def test_a_step_that_raised_and_is_tried_again_is_one_step(tmp_path: Path) -> None:
    probe = Probe(ProbeConfig(folder=str(tmp_path)))
    before, after = step_hooks(probe, _Slots())
    before(OUTER, (), {})
    before(OUTER, (), {})
    after(OUTER, (), {})
    assert probe.boundary.steps == 1
