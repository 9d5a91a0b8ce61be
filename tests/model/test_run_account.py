"""What a run's account sums up."""

from __future__ import annotations

import pytest

from hotloop.model.observation import RunAccount


def test_neither_start_nor_end_is_training() -> None:
    parts = {
        "import_s": 2.0,
        "first_step_s": 0.5,
        "step_forward_s": 0.25,
        "evaluation_s": 0.125,
        "held_by_hotloop_s": 0.5,
        "after_training_s": 0.25,
        "shutdown_s": 0.75,
        "unaccounted_s": 0.125,
    }
    run = RunAccount(wall_s=sum(parts.values()), parts=parts)
    assert run.startup_s == pytest.approx(2.5)
    assert run.training_s == pytest.approx(0.375)
