"""What every test run says at its end: the time that each folder took."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each folder of tests, the slowest first; with several workers they overlap."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = PurePath(report.nodeid.partition("::")[0]).parent.as_posix()
                seconds[folder] += report.duration
                tests[folder] += report.when == "call"
    if seconds:
        terminalreporter.section("time per folder")
    for folder, duration in seconds.most_common():
        terminalreporter.write_line(f"{duration:7.1f} s  {tests[folder]:5} tests  {folder}")
