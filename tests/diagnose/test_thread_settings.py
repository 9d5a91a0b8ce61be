"""Threads that a program denies itself: what they would bring, and which line denies them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.source import with_source
from hotloop.diagnose.lines.setting_line import setting_line
from hotloop.model.deep import Frame, HostSamples
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .observations import with_program
from .watched_cases import operator, with_operators


def of_one_thread(share: float, script: Path) -> Observation:
    """Return an observation of one thread, in which so much of the operators' time is in long ones."""
    long = operator("aten::convolution", share, count=10.0)
    short = operator("aten::add", 1.0 - share, count=10_000.0)
    seen = with_program(with_operators(long, short), num_threads=1)
    sha = hashlib.sha256(script.read_bytes()).hexdigest()
    return msgspec.structs.replace(
        seen, program=msgspec.structs.replace(seen.program, script=str(script), script_sha256=sha)
    )


def told(observation: Observation, folder: Path) -> Finding:
    """Return the finding, placed in the program's source."""
    found = with_source(diagnose(observation), folder).findings
    return next(one for one in found if one.code == "undersubscribed-threads")


@pytest.mark.parametrize(
    "text", ["import torch\ntorch.set_num_threads(1)\n", "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"]
)
def test_the_line_that_sets_one_thread_is_a_warning_where_operators_are_long(
    tmp_path: Path, text: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    finding = told(of_one_thread(0.9, script), tmp_path)
    assert (finding.path, finding.line, finding.severity) == ("train.py", 2, Severity.WARNING)
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(1 / (1 - 7 / 8 * 0.9), rel=0.01)


def test_short_operators_gain_nothing_from_threads(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.set_num_threads(1)\n")
    finding = told(of_one_thread(0.0, script), tmp_path)
    assert finding.severity is Severity.INFO
    assert finding.gain is not None
    assert finding.gain.ratio == 1.0


def test_of_several_lines_the_first_that_settles_it_is_named(tmp_path: Path) -> None:
    script, helper = tmp_path / "train.py", tmp_path / "helper.py"
    script.write_text("os.environ['OMP_NUM_THREADS'] = '1'\nos.environ['MKL_NUM_THREADS'] = '1'\n")
    helper.write_text("import torch\n\ntorch.set_num_threads(1)\ntorch.set_num_threads(2)\n")
    files = [str(script), str(helper)]
    assert setting_line("undersubscribed-threads", files[:1]) == (str(script), 1)
    assert setting_line("undersubscribed-threads", files) == (str(helper), 3)
    assert setting_line("anomaly-mode-on", files) is None


def test_a_script_that_is_called_by_a_relative_path_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.set_num_threads(1)\n")
    monkeypatch.chdir(tmp_path)
    seen = of_one_thread(0.9, Path("train.py"))
    assert seen.deep is not None
    host = HostSamples(
        num_steps=1,
        window_s=1.0,
        interval_s=0.1,
        lines=(),
        frames=(Frame(str(script), 2, "<module>"),),
        samples=(),
    )
    seen = msgspec.structs.replace(seen, deep=msgspec.structs.replace(seen.deep, host=host))
    finding = told(seen, tmp_path)
    assert (finding.path, finding.line) == ("train.py", 2)
