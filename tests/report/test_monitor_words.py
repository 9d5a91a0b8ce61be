"""Monitors under names that people read."""

from __future__ import annotations

import pytest

from hotloop.report.content.monitor_words import monitor_amount, monitor_name


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cpu_busy_ratio", 0.8, "cpu busy: 80.0%"),
        ('cpu_utilization_ratio{core="3"}', 0.8, "cpu utilization, core 3: 80.0%"),
        ("cpu_foreign_ratio", 0.02, "cpu used by others: 2.0%"),
        ("disk_read_bytes_per_s", 1 << 20, "disk read: 1.00 MiB/s"),
        ('gpu_power_w{gpu="0"}', 300.0, "gpu power, gpu 0: 300 W"),
        ('gpu_clock_hz{gpu="0"}', 1.98e9, "gpu clock, gpu 0: 1.98 GHz"),
    ],
)
def test_a_monitor_has_words_and_a_unit(name: str, value: float, said: str) -> None:
    assert f"{monitor_name(name)}: {monitor_amount(name, value)}" == said
