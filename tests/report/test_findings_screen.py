"""What `hotloop diagnose` and `hotloop lint` show."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.console import Group
from rich.text import Text

from hotloop.model.ceilings import Ceilings
from hotloop.model.diagnosis import Abstention, Bottleneck, Diagnosis
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Coverage, ProgramRun
from hotloop.model.ratio import Ratio
from hotloop.report.content.ratios import told_gain
from hotloop.report.terminal.findings import render, render_next
from hotloop.report.terminal.lint import render_text

from .results import shown
from .snapshots import matches
from .test_observation_screen import observation

FINDINGS = (
    Finding(
        code="anomaly-mode-on",
        title="Autograd's anomaly mode is on",
        severity=Severity.ERROR,
        path="train.py",
        line=3,
        cost_s=0.0265,
        cost_low_s=0.0221,
        cost_high_s=0.0305,
        gain=Ratio(1.25, 1.2, 1.3),
        evidence="anomaly detection is on, in forward and backward, which take 45% of the step",
        advice="Switch torch.autograd.set_detect_anomaly off.",
        optimization="debug_apis_off",
    ),
    Finding(
        code="host-code-in-model",
        title="The model computes on the host",
        severity=Severity.WARNING,
        path="net.py",
        line=40,
        cost_s=0.0199,
        cost_low_s=0.0,
        cost_high_s=0.09,
        gain=Ratio(1.18, 1.0, 3.1),
        evidence="15% of the step (19.9 ms) is spent under this line of the model",
        advice="Compute it once, outside of the model.",
    ),
    Finding(
        code="unfused-optimizer",
        title="The optimizer is not fused",
        severity=Severity.INFO,
        metric="phases.optimizer.share",
        gain=Ratio(1.04, 1.02, 1.06),
        evidence="Adam runs without fused=True, and takes 4% of the step (5.31 ms)",
        advice="Pass fused=True to the optimizer.",
        optimization="fused_optimizer",
    ),
    Finding(
        code="full-precision-step",
        title="Full float32 on hardware with faster units",
        severity=Severity.INFO,
        gain=Ratio(1.0, 1.0, 1.66),
        advice="Try autocast to bfloat16.",
        optimization="autocast_bf16",
    ),
    Finding(
        code="busy-machine",
        title="Other programs used the machine",
        severity=Severity.WARNING,
        metric="foreign_share",
        evidence="other processes used 77% of the CPU meanwhile",
        advice="Measure again when it is quiet.",
    ),
)


def _diagnosis(**changes: Any) -> Diagnosis:
    seen = observation(ceilings=Ceilings(perfect_input=Ratio(2.0, 1.9, 2.1), perfect_input_step_s=0.0664))
    whole = Diagnosis(
        bottleneck=Bottleneck("input", 0.5, "input-bound: 50% of the step waits for data"),
        findings=FINDINGS[:4],
        abstained=(Abstention("idle-device", "a device that is watched"),),
        observation=seen,
    )
    return msgspec.structs.replace(whole, **changes)


def test_what_matters_is_shown_and_the_rest_is_counted() -> None:
    assert matches("diagnose", render(_diagnosis()))
    assert "Full float32" not in shown(render(_diagnosis()))


def test_everything_where_it_is_asked_for() -> None:
    screen = shown(render(_diagnosis(), verbose=True))
    assert "Full float32" in screen
    assert "idle-device  a device that is watched" in screen


def test_a_busy_machine_is_said_once_and_first() -> None:
    busy = _diagnosis(observation=observation(foreign_share=0.77), findings=FINDINGS)
    assert matches("diagnose_busy", render(busy))
    assert shown(render(busy)).count("77%") == 1


def test_nothing_found() -> None:
    assert matches("diagnose_nothing", render(_diagnosis(findings=(), abstained=())))


def test_what_had_no_time_and_which_run_told_what() -> None:
    runs = (
        ProgramRun(told=("step",), why="", wall_s=5.0),
        ProgramRun(told=("host", "call_sites"), why="the first one ended after 20 steps", wall_s=5.0),
    )
    gap = Coverage("operators, memory", "no time left (--seconds 20)")
    said = " ".join(shown(render(_diagnosis(observation=observation(coverage=(gap,), runs=runs)))).split())
    assert "Not looked at: operators, memory: no time left (--seconds 20)." in said
    assert "From run 1: step; run 2: host and call sites." in said


def test_what_to_type_next() -> None:
    assert matches("diagnose_next", render_next(_diagnosis()))


def test_a_run_without_a_step() -> None:
    why = Coverage("step", "the program took no step (let it run longer, or check that it trains)")
    seen = observation(step=None, phases={}, coverage=(why,))
    diagnosis = _diagnosis(bottleneck=None, findings=(), abstained=(), observation=seen)
    assert matches("diagnose_no_step", Group(render(diagnosis), render_next(diagnosis)))


def test_a_program_that_fails_is_not_to_be_tuned() -> None:
    failed = shown(render_next(_diagnosis(observation=observation(exit_code=3))))
    assert "your program failed: run it alone and fix it first" in failed
    assert "hotloop tune" not in failed


def test_lint() -> None:
    found = [*FINDINGS[:2], FINDINGS[1], msgspec.structs.replace(FINDINGS[2], path="train.py", line=9)]
    text = render_text(found, 1)
    assert text.count("net.py:40") == 1, "one line of a file is told once"
    assert "fix by hand" not in text, "lint --fix may do it"
    assert text.endswith(
        "3 findings in 1 file: 1 error, 1 warning, 1 info.\n`hotloop explain anomaly-mode-on` tells more.\n"
    )
    assert render_text([], 2) == "No findings in 2 files.\n"
    assert Text(text)


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (Ratio(1.5, 1.4, 1.6), "1.50x [1.40, 1.60]"),
        (Ratio(3.0, 1.5, 9.0), "at least 1.5x"),
        (Ratio(1.69, 1.0, 100.0), "perhaps 1.7x"),
    ],
)
def test_an_interval_that_says_nothing_is_not_shown(gain: Ratio, said: str) -> None:
    assert told_gain(gain) == said
