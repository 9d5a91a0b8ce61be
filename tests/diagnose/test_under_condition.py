"""A line that may not have run is no certain cause of what was measured."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.source import with_source
from hotloop.diagnose.lines.under_condition import may_not_run
from hotloop.model.deep import Deep, Frame, HostSamples
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .observations import FINE
from .watched_cases import with_memory

_LEAK = """\
import torch
from torch import nn
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
crit = nn.CrossEntropyLoss()
def main(mode):
    total = 0.0
    for step in range(100000):
        x = torch.randn(256, 256); y = torch.randint(0, 10, (256,))
        loss = crit(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        {leak}
main("eval")
"""
_SURE, _BRANCH = "total += loss", 'if mode == "train":\n            total += loss'


def _told(tmp_path: Path, leak: str) -> Finding:
    script = tmp_path / "train.py"
    script.write_text(_LEAK.format(leak=leak))
    seen = with_memory(*(1 + 0.05 * at for at in range(12)))
    sha = hashlib.sha256(script.read_bytes()).hexdigest()
    program = msgspec.structs.replace(seen.program, script=str(script), script_sha256=sha)
    found = with_source(diagnose(msgspec.structs.replace(seen, program=program)), tmp_path).findings
    return next(one for one in found if one.code == "memory-growing")


def test_a_line_that_runs_with_each_step_is_the_cause(tmp_path: Path) -> None:
    finding = _told(tmp_path, _SURE)
    assert (finding.path, finding.line, finding.severity) == ("train.py", 12, Severity.ERROR)


def test_a_line_in_a_branch_is_named_as_a_possibility(tmp_path: Path) -> None:
    finding = _told(tmp_path, _BRANCH)
    assert (finding.path, finding.severity) == (None, Severity.WARNING)
    assert "if train.py:13 runs, which was not seen: total keeps the graph of loss" in finding.evidence


@pytest.mark.parametrize(
    ("line", "doubted"), [(3, False), (4, False), (5, True), (7, True), (10, False), (12, False)]
)
def test_branches_around_a_whole_loop_do_not_count(tmp_path: Path, line: int, doubted: bool) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "if __name__ == '__main__':\n  for step in range(9):\n    a()\n    if step:\n      b()\n"
        "    else:\n      c()\n  if d:\n    while True:\n      e()\nif f:\n  g()\n"
    )
    finding = Finding(code="x", title="", severity=Severity.INFO, path=str(path), line=line, evidence="")
    assert may_not_run(finding, FINE) is doubted
    frames = (Frame(str(path), line, "<module>"),)
    host = HostSamples(num_steps=1, window_s=1.0, interval_s=0.1, lines=(), frames=frames, samples=())
    sampled: Observation = msgspec.structs.replace(FINE, deep=Deep(host=host))
    assert not may_not_run(finding, sampled)
