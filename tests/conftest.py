"""What holds in every test run, and what it says at its end: the time of each folder, and what was left out."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import PurePath

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_configure() -> None:
    """Keep a width from the programs that tests start: readline, which pytest loads, exports COLUMNS."""
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")  # what readline sets in C, os.environ does not know of


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
    left_out = _left_out(terminalreporter)
    if left_out:
        terminalreporter.section("left out")
    for line in left_out:
        terminalreporter.write_line(line)


def _left_out(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """Return what was not tested, and why, a line each."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        if isinstance(report, pytest.TestReport) and isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    said = [f"{num:5} tests  {reason}" for reason, num in reasons.most_common()]
    if "not slow" in (terminalreporter.config.option.markexpr or ""):
        said.append("slow tests (make slow): programs end to end, the report in a browser")
        if not any(map(shutil.which, BROWSERS)):
            said.append("there is no Chromium, so make slow does not look at the report in a browser either")
        if not os.environ.get("HOTLOOP_AXE"):
            said.append("$HOTLOOP_AXE names no axe-core, so make slow does not judge accessibility either")
    return said
