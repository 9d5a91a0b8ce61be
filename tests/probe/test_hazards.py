"""What real programs do to hooks: with the probe inside they see exactly what they see without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop.observe.decode.processes import read_processes

from .conftest import run_python, with_probe

_PROGRAM = Path(__file__).with_name("hazards")
_NAMES = sorted(path.stem for path in _PROGRAM.glob("cases/*.py"))


def _run(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    done = run_python([str(_PROGRAM), str(folder / "results.json"), str(folder)], environment, folder)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """The same program without the probe and with it."""
    folder = tmp_path_factory.mktemp("hazards")
    without = _run(folder / "without", dict(os.environ))
    return folder, without, _run(folder / "with", with_probe(folder / "probe"))


@pytest.mark.parametrize("name", _NAMES)
def test_the_program_sees_no_difference(both: tuple[Path, dict[str, Any], dict[str, Any]], name: str) -> None:
    _, without, probed = both
    assert "error" not in without[name], without[name]["error"]
    assert "error" not in probed[name], probed[name]["error"]
    assert probed[name]["value"] == without[name]["value"]


def test_the_probe_was_inside_and_nothing_of_it_failed(
    both: tuple[Path, dict[str, Any], dict[str, Any]],
) -> None:
    processes = read_processes(both[0] / "probe")
    assert len(processes) == 1
    (facts,) = processes.values()
    assert facts["steps"] > 50
    assert facts["notes"] == []


@pytest.mark.parametrize(
    "load", ["torch.load('whole.pt', weights_only=False)", "torch.load('state.pt', weights_only=True)"]
)
def test_what_was_saved_loads_where_hotloop_is_not_installed(
    both: tuple[Path, dict[str, Any], dict[str, Any]], load: str
) -> None:
    code = f"""
import sys
sys.modules['hotloop'] = None
import torch
from torch import nn
sys.path.insert(0, {str(_PROGRAM)!r})
import program
sys.modules['__main__'].Net = program.Net
thing = {load}
if isinstance(thing, nn.Module):
    print(thing(torch.ones(1, 8)).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=both[0] / "with", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
