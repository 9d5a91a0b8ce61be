"""The call-site instrument around a piece of a program whose lines are marked."""

from __future__ import annotations

import gc
import sys
import textwrap
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import profile

from hotloop.probe.instruments import torch_profiler
from hotloop.probe.instruments.call_sites import CallSites
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig


@dataclass(frozen=True)
class Watched:
    """What the instrument saw of a piece of a program."""

    value: dict[str, Any]
    path: Path
    text: str

    def marked(self, mark: str) -> set[int]:
        """Return the lines with a mark."""
        lines = enumerate(self.text.splitlines(), start=1)
        return {number for number, line in lines if f"# {mark}" in line}

    def lines(self, kind: str) -> set[int]:
        """Return the lines at which a kind of call was seen."""
        return {key[1] for key in self.value["keys"] if key[4] == kind}

    def counts(self) -> dict[tuple[int, str], int]:
        """Return line and call to their number in the first step."""
        keys = self.value["keys"]
        return {(keys[number][1], keys[number][3]): count for number, count, _, _ in self.value["steps"][0]}


Watch = Callable[..., Watched]


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    """A probe that is installed nowhere, of a program that compiles nothing, whatever other tests compiled here."""
    if "torch._dynamo.utils" in sys.modules:
        sys.modules["torch._dynamo.utils"].counters.clear()
    folder = tmp_path / "probe"
    folder.mkdir()
    return Probe(ProbeConfig(folder=str(folder)))


@pytest.fixture
def watch(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Run a program's set-up, then its function `step` in the window."""

    def run(text: str, num_steps: int = 1) -> Watched:
        path = tmp_path / "program.py"
        text = textwrap.dedent(text)
        path.write_text(text)
        module = ModuleType("program")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "program", module)
        exec(compile(text, str(path), "exec"), vars(module))
        instrument = CallSites(probe)
        instrument.start()
        try:
            for _ in range(num_steps):
                module.step()
                instrument.step()
        finally:
            value = instrument.stop()
        return Watched(value, path, text)

    return run


@pytest.fixture(autouse=True)
def no_profiler_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler that a test of another file left in this process is not the program's."""
    left = [each for each in gc.get_objects() if issubclass(type(each), (autograd_profile, profile))]
    monkeypatch.setattr(torch_profiler, "_OURS", weakref.WeakSet(left))
