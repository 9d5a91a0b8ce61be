"""Where a container gains an entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.deep import GrowingContainer
from hotloop.observe.profile.container_line import growing_line

_TEXT = """\
history = []
class Recorder:
    def __init__(self):
        self.kept = []
        self.by_step = {}
    def keep(self, value, step):
        self.kept.append(value)
        self.by_step[step] = value
total = []
def train():
    other.append(1)
    history.append(2)
    total += [3]
logs = {}
logs["loss"] = []
logs["loss"].append(4)
@cache
def looked_up(step):
    return step
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("history", 12),
        ("self.kept", 7),
        ("self.by_step", 8),
        ("total", 13),
        ("logs['loss']", 16),
        ("looked_up", 18),
        ("nothing", None),
    ],
)
def test_it_is_the_line_that_adds_to_the_name(tmp_path: Path, name: str, line: int | None) -> None:
    path = tmp_path / "train.py"
    path.write_text(_TEXT)
    holder = GrowingContainer(
        name=name,
        path=str(path),
        function="train",
        kind="list",
        per_step=1,
        bytes_per_step=4,
        keeps_graph=True,
    )
    assert growing_line(holder) == line
