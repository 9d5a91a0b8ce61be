"""What `hotloop observe` shows, letter by letter."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hotloop.model.observation import (
    Anchor,
    Coverage,
    Memory,
    Observation,
    Phase,
    PhaseTime,
    ProgramFacts,
    RankObservation,
    RunAccount,
    StepTime,
)
from hotloop.report.terminal.observation import render

from .results import shown

STEP = StepTime(
    num=212,
    median_s=0.1234,
    low_s=0.1215,
    high_s=0.1257,
    p50_s=0.1234,
    p95_s=0.151,
    p99_s=0.203,
    samples_per_s=518.6,
    tokens_per_s=66380.0,
    rhythm=("4x(data forward backward)", "optimizer"),
)
PHASES = {
    Phase.DATA: PhaseTime(0.0617, 0.5),
    Phase.FORWARD: PhaseTime(0.0247, 0.2),
    Phase.BACKWARD: PhaseTime(0.0308, 0.25),
    Phase.OPTIMIZER: PhaseTime(0.0049, 0.04),
    Phase.OTHER: PhaseTime(0.0012, 0.01),
}


def _observation(**changes: Any) -> Observation:
    whole = Observation(
        command=("python", "train.py"),
        step=STEP,
        phases=PHASES,
        ranks=(),
        memory=Memory(
            peak_bytes=812 << 20, device="cpu", method="largest resident set of the training process"
        ),
        run=RunAccount(
            wall_s=31.4,
            parts={
                "import_s": 2.81,
                "setup_s": 0.9,
                "first_step_s": 0.4,
                "step_data_s": 13.1,
                "step_forward_s": 13.1,
                "evaluation_s": 0.95,
                "shutdown_s": 0.01,
                "unaccounted_s": 0.13,
            },
            num_steps=214,
            num_evaluations=2,
        ),
        coverage=(
            Coverage(
                "phases.transfer", "the program keeps everything on the CPU, so nothing is moved anywhere"
            ),
        ),
        program=ProgramFacts(),
        anchor=Anchor("optimizer", 0),
        machine={},
        exit_code=None,
    )
    return msgspec.structs.replace(whole, **changes)


def test_an_observation() -> None:
    assert shown(render(_observation())) == WHOLE


def test_several_ranks_are_shown_side_by_side() -> None:
    ranks = tuple(
        RankObservation(rank=rank, pid=pid, role="train", step=STEP, phases=PHASES)
        for rank, pid in ((0, 100), (1, 101), (None, 102))
    )
    screen = shown(render(_observation(ranks=ranks)))
    assert "rank    step   data  forward  backward  optimizer  other\n" in screen
    assert "   1  123 ms  50.0%    20.0%     25.0%       4.0%   1.0%\n" in screen
    assert "pid 102  123 ms" in screen


def test_all_phases_of_eight_ranks_fit_the_screen() -> None:
    phases = {phase: PhaseTime(0.0123, 0.142) for phase in Phase}
    ranks = tuple(
        RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases=phases) for rank in range(8)
    )
    lines = shown(render(_observation(ranks=ranks, phases=phases))).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.lstrip().startswith(("0 ", "7 ")) for line in lines) == 2


def test_without_a_step_it_says_so() -> None:
    screen = shown(render(_observation(step=None)))
    assert screen.startswith("no step was measured\n\nnot measured\n  phases.transfer: the program keeps")


@pytest.mark.parametrize("word", ["[bold]", "[/]"])
def test_brackets_are_shown_as_they_are(word: str) -> None:
    screen = shown(render(_observation(coverage=(Coverage(word, f"why {word}"),))))
    assert f"{word}: why {word}" in screen


WHOLE = """\
step  123 ms  [122 ms, 126 ms] median of 212 steps, 95% interval
      p95 151 ms, p99 203 ms, 519 samples/s, 66,380 tokens/s
      rhythm: 4x(data forward backward) optimizer

data      61.7 ms 50.0% ██████████████████
forward   24.7 ms 20.0% ███████
backward  30.8 ms 25.0% █████████
optimizer 4.90 ms  4.0% █
other     1.20 ms  1.0% █

run 31.4 s
steps           26.2 s 83.4% ███████████████ 214 in the whole run
imports         2.81 s  8.9% ██
evaluation      950 ms  3.0% █               2 times, 475 ms each
set-up          900 ms  2.9% █
first step      400 ms  1.3% █
2 smaller parts 140 ms  0.4% █

memory  peak 812 MiB (largest resident set of the training process)

not measured
  phases.transfer: the program keeps everything on the CPU, so nothing is moved
  anywhere"""
