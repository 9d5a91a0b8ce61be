"""The recorded step times are read as they were written, and drawn in the order of time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .recorded import RecordedMachine, Segment, load, recorded, save


def test_every_condition_has_all_six_programs() -> None:
    for condition in ("quiet", "busy, passive"):
        assert len(recorded(condition)) == 6


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    segment = Segment(
        program="one",
        condition="quiet",
        pair=0,
        grain_s=0.2,
        turns=(0, 1),
        step_s=(np.array([0.01, 0.012]), np.array([0.5])),
        running_s=(0.02, 0.5),
        waiting_s=(0.0, 0.1),
    )
    save([segment], tmp_path / "steps.npz")
    (found,) = load(tmp_path / "steps.npz")
    assert found.turns == segment.turns
    assert [block.tolist() for block in found.step_s] == [pytest.approx([0.01, 0.012]), pytest.approx([0.5])]


@pytest.mark.parametrize("program", recorded("quiet"))
def test_steps_go_on_where_they_stopped(program: str) -> None:
    whole = RecordedMachine(np.random.default_rng(3), program, "quiet").steps(30)
    parts = RecordedMachine(np.random.default_rng(3), program, "quiet")
    assert np.concatenate([parts.steps(10), parts.steps(20)]).tolist() == whole.tolist()
    assert 0.2 < np.median(whole) < 5
