"""Programs that run with the probe inside, as the launcher starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hotloop.launch.environment import probed
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig

RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


def with_probe(folder: Path, config: ProbeConfig | None = None) -> dict[str, str]:
    """Return an environment with the probe in it, recording to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ControlPage.create(folder / "control").close()
    orders = folder / "orders.json"
    (config or ProbeConfig(folder=str(folder))).save(orders)
    return probed(os.environ, orders)


def run_python(
    argv: Sequence[str], environment: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end."""
    return subprocess.run(
        [sys.executable, *argv],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def run_probed(tmp_path: Path) -> RunProgram:
    """Run Python code with the probe inside; the records are in `tmp_path / "probe"`."""

    def run(code: str, config: ProbeConfig | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(code)
        return run_python(["program.py"], with_probe(tmp_path / "probe", config), tmp_path)

    return run
