"""Static findings get their price from the samples under their lines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.lines.static_findings import priced
from hotloop.model.deep import Deep, Frame, HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation

from .observations import FINE, with_phases

_TEXT = """\
def main():
    for batch in loader:
        loss = step(batch)
        for p in model.parameters():
            ema[p].mul_(0.9)
            ema[p].add_(p)
        log(loss)
"""
_NUM_SAMPLES = 100


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A program with a loop over parameters at line 4."""
    path = tmp_path / "train.py"
    path.write_text(_TEXT)
    return str(path)


def _seen(script: str, *lines: int, observation: Observation = FINE) -> Observation:
    """A hundred samples: these many of line 4, 5, 6 and 7 of main, the others of line 3."""
    counts = {3: _NUM_SAMPLES - sum(lines), **dict(zip((4, 5, 6, 7), lines, strict=False))}
    frames = tuple(Frame(script, line, "main") for line in counts)
    samples = tuple(
        Sample((at,), "train", "other" if line > 3 else "forward", num * 0.005, num)
        for at, (line, num) in enumerate(counts.items())
        if num
    )
    host = HostSamples(num_steps=9, window_s=1.0, interval_s=0.005, lines=(), frames=frames, samples=samples)
    return msgspec.structs.replace(observation, deep=Deep(host=host))


def _static(script: str, line: int, code: str = "parameter-loop-in-step") -> Finding:
    return Finding(
        code=code, title="A loop", severity=Severity.INFO, path=script, line=line, evidence="a loop"
    )


def test_a_loop_costs_what_is_under_all_of_its_lines(script: str) -> None:
    known, rest = priced(_seen(script, 5, 10, 15, 20), (), [_static(script, 4)])
    (finding,) = known
    assert rest == []
    assert finding.severity is Severity.WARNING
    assert finding.cost_s == pytest.approx(0.3 * 0.1)
    assert finding.cost_low_s is not None
    assert finding.cost_high_s is not None
    assert finding.cost_low_s < 0.03 < finding.cost_high_s
    assert "30% of the step" in finding.evidence


def test_a_line_costs_what_is_under_it_alone(script: str) -> None:
    (finding,), _ = priced(_seen(script, 5, 10, 15, 20), (), [_static(script, 7)])
    assert finding.cost_s == pytest.approx(0.2 * 0.1)


def test_what_holds_the_training_itself_or_nothing_has_no_price(script: str) -> None:
    seen = _seen(script, 0, 10)
    whole, none = _static(script, 2), _static(script, 7)
    assert priced(seen, (), [whole, none]) == ([], [whole, none])
    assert priced(FINE, (), [whole]) == ([], [whole]), "without samples nothing has"


def test_it_takes_the_place_of_what_names_the_line_alone(script: str) -> None:
    seen = _seen(script, 0, 10, 40, observation=with_phases(other=0.5))
    measured = diagnose(seen).findings
    assert any(one.code == "hot-line-outside-phases" and one.line == 6 for one in measured)
    known, _ = priced(seen, measured, [_static(script, 4)])
    codes = [one.code for one in known]
    assert "parameter-loop-in-step" in codes
    assert "hot-line-outside-phases" not in codes
    elsewhere, _ = priced(seen, measured, [_static(script, 7)])
    assert any(one.code == "hot-line-outside-phases" for one in elsewhere)


def test_a_file_that_is_gone_has_no_lines(script: str) -> None:
    gone = _static(f"{script}.old", 4)
    assert priced(_seen(script, 50), (), [gone]) == ([], [gone])
