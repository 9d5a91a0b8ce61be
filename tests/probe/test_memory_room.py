"""The tightest limit on the way up is the process's."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.probe.memory_failure import room


@pytest.mark.parametrize(
    ("line", "below", "most", "used"),
    [
        ("0::/slurm/job_7/step_0/task_1", "", "memory.max", "memory.current"),
        (
            "9:cpu,memory:/slurm/job_7/step_0/task_1",
            "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        ),
    ],
)
def test_a_limit_of_the_job_counts_for_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, below: str, most: str, used: str
) -> None:
    told, mounted = tmp_path / "cgroup", tmp_path / "mounted"
    told.write_text(f"{line}\n")
    for path, limit in {
        "": "max", "slurm": "9000", "slurm/job_7": "5000", "slurm/job_7/step_0": "max",
        "slurm/job_7/step_0/task_1": "8000",
    }.items():  # fmt: skip
        folder = mounted / below / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / most).write_text(limit)
        (folder / used).write_text("4000")
    monkeypatch.setattr(room, "_PROCESS_GROUPS", told)
    monkeypatch.setattr(room, "_CGROUP", mounted)
    found = room._container()
    assert found is not None
    assert (found["limit_bytes"], found["free_bytes"]) == (5000, 1000)
