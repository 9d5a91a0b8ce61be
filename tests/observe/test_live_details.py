"""What `observe --live` shows of a run under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.machine.monitor.columns import Metric
from hotloop.model.observation import Anchor
from hotloop.observe.run.live_details import live_details, still_to_come
from hotloop.observe.run.stopping import StopRule
from hotloop.observe.steps.ranks import steady_windows

from .synthetic import Script

SAMPLE = {
    Metric("cpu_busy_ratio"): 0.8,
    Metric("cpu_foreign_ratio"): 0.25,
    Metric("disk_read_bytes_per_s"): float(50 << 20),
    Metric("gpu_utilization_ratio", (("gpu", "0"),)): 0.4,
    Metric("gpu_memory_used_bytes", (("gpu", "0"),)): float(3 << 30),
}


def test_phases_and_the_machine_are_a_line_each(tmp_path: Path) -> None:
    lead = Script(tmp_path).train(12).timeline()
    phases, machine = live_details(lead, steady_windows(lead, Anchor("optimizer", 0, 1)), SAMPLE)
    shares = [int(part.split("%")[0]) for part in phases.split(", ") if "%" in part]
    assert sum(shares) == pytest.approx(100, abs=len(shares))
    assert shares == sorted(shares, reverse=True)
    assert machine == "CPU 80% busy (25% by other processes), disk 50.0 MiB/s read, GPU 0 40% busy, 3.00 GiB"


def test_what_is_not_measured_is_not_said(tmp_path: Path) -> None:
    lead = Script(tmp_path).train(12).timeline()
    assert len(live_details(lead, steady_windows(lead, Anchor("optimizer", 0, 1)), {})) == 1


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (StopRule(steps=100), "60 to go"),
        (StopRule(seconds=30.0), "20 s to go"),
        (StopRule(seconds=10.0), ""),
        (StopRule(full=True), ""),
    ],
)
def test_what_is_still_to_come(rule: StopRule, said: str) -> None:
    assert still_to_come(rule, 40, 10.0) == said
