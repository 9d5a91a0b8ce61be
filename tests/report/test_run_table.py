"""How often things happened in a run."""

from __future__ import annotations

import pytest

from hotloop.model.observation import RunAccount
from hotloop.report.sections.run_table import run_table


@pytest.mark.parametrize(
    ("num_epochs", "said"), [(None, ""), (1, ""), (2, "once"), (4, "3 times, 1.00 s each")]
)
def test_what_lies_between_epochs_is_one_less_than_they_are(num_epochs: int | None, said: str) -> None:
    run = RunAccount(wall_s=10.0, parts={"epoch_boundary_s": 3.0, "setup_s": 7.0}, num_epochs=num_epochs)
    rows = {row[0]: row for row in run_table(run).rows}
    assert rows["epoch boundary"][-1] == said
