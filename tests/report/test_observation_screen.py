"""What `hotloop observe` shows, letter by letter."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hotloop.launch.isolation.decide import Exceptions
from hotloop.model.deep import HostLine
from hotloop.model.inference import Inference, Latency
from hotloop.model.observation import (
    Anchor,
    Coverage,
    Memory,
    Observation,
    Phase,
    PhaseTime,
    RankObservation,
    RunAccount,
    StepTime,
)
from hotloop.model.program import ProgramFacts
from hotloop.model.tree_memory import TreeMemory
from hotloop.report.document import Table
from hotloop.report.sections.step import step
from hotloop.report.terminal.observation import render, render_next

from .results import shown
from .snapshots import matches

STEP = StepTime(
    num=212,
    median_s=0.1234,
    low_s=0.1215,
    high_s=0.1257,
    p50_s=0.1234,
    p95_s=0.151,
    p99_s=0.203,
    mean_s=0.1327,
    samples_per_s=482.3,
    tokens_per_s=61730.0,
    rhythm=("4x(data forward backward)", "optimizer"),
)
PHASES = {
    Phase.DATA: PhaseTime(0.0617, 0.5),
    Phase.FORWARD: PhaseTime(0.0247, 0.2),
    Phase.BACKWARD: PhaseTime(0.0308, 0.25),
    Phase.OPTIMIZER: PhaseTime(0.0049, 0.04),
    Phase.OTHER: PhaseTime(0.0012, 0.01),
}


def observation(**changes: Any) -> Observation:
    whole = Observation(
        command=("python", "train.py"),
        step=STEP,
        phases=PHASES,
        ranks=(),
        memory=Memory(
            peak_bytes=812 << 20,
            device="cpu",
            method="largest resident set of the training process",
            tree=TreeMemory(peak_bytes=1 << 30, method="PSS", num_processes=3),
        ),
        run=RunAccount(
            wall_s=33.6,
            parts={
                "import_s": 2.81,
                "setup_s": 0.9,
                "first_step_s": 0.4,
                "step_data_s": 14.2,
                "step_forward_s": 14.2,
                "evaluation_s": 0.95,
                "shutdown_s": 0.01,
                "unaccounted_s": 0.13,
            },
            num_steps=214,
            num_evaluations=2,
        ),
        coverage=(
            Coverage("transfer", "the program keeps everything on the CPU, so nothing is moved anywhere"),
        ),
        program=ProgramFacts(),
        anchor=Anchor("optimizer", 0),
        machine={},
        exit_code=None,
    )
    return msgspec.structs.replace(whole, **changes)


def test_an_observation() -> None:
    assert matches("observe", render(observation()))


def test_what_to_type_next() -> None:
    assert matches("observe_next", render_next(observation()))
    needs = Exceptions(writable=(Path("my cache"),), all_writes=True, network=True).options()
    said = " ".join(shown(render_next(observation(), options=needs)).replace("\\\n", "").split())
    assert "hotloop tune --writable 'my cache' --allow-writes --network python train.py" in said


def test_a_busy_machine_is_said_first() -> None:
    assert matches("observe_busy", render(observation(foreign_share=0.77)))
    assert shown(render(observation(foreign_share=0.14))).startswith(
        "Read with care: other processes used 14%"
    )
    assert "other processes" not in shown(render(observation(foreign_share=0.05)))


def test_several_ranks_are_shown_side_by_side() -> None:
    ranks = tuple(
        RankObservation(rank=rank, pid=pid, role="train", step=STEP, phases=PHASES)
        for rank, pid in ((0, 100), (1, 101), (None, 102))
    )
    assert matches("observe_ranks", render(observation(ranks=ranks)))
    screen = shown(render(observation(ranks=ranks)))
    assert "rank  mean step   data  forward  backward  optimizer  other\n" in screen
    assert "   1     133 ms  50.0%    20.0%     25.0%       4.0%   1.0%\n" in screen
    assert "pid 102     133 ms" in screen


def test_the_rank_that_the_others_wait_for_is_named_below_their_table() -> None:
    late = PHASES | {Phase.DATA: PhaseTime(0.0617, 0.7), Phase.FORWARD: PhaseTime(0.0247, 0.0)}
    ranks = tuple(
        RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases=phases)
        for rank, phases in enumerate((PHASES, late))
    )
    said = " ".join(shown(render(observation(ranks=ranks))).split())
    assert "Rank 1 comes last to the collectives, and the others wait: its wait for data takes" in said
    line = HostLine(
        path="train.py",
        line=12,
        function="read",
        process="train",
        phase="data",
        share=0.7,
        spent_s=1.0,
        num=90,
    )
    known = (ranks[0], msgspec.structs.replace(ranks[1], lines=(line,)))
    said = " ".join(shown(render(observation(ranks=known))).split())
    assert "Most of it is in train.py:12." in said
    same = tuple(msgspec.structs.replace(one, phases=PHASES) for one in ranks)
    assert "comes last" not in shown(render(observation(ranks=same)))


def test_the_rank_that_is_shown_is_the_one_named() -> None:
    """With uneven inputs the rank that goes on alone speaks for all."""
    other = {**PHASES, Phase.DATA: PhaseTime(0.01, 0.1), Phase.FORWARD: PhaseTime(0.07, 0.6)}
    ranks = tuple(
        RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases=phases)
        for rank, phases in enumerate((other, PHASES))
    )
    assert "is waiting for data (rank 1)." in shown(render(observation(ranks=ranks)))


def test_steps_that_are_not_regular_are_counted_apart() -> None:
    account = msgspec.structs.replace(observation().run, num_regular_steps=200)
    assert "200 of 214 steps" in shown(render(observation(run=account)))


def test_all_phases_of_eight_ranks_fit_the_screen() -> None:
    phases = {phase: PhaseTime(0.0123, 0.142) for phase in Phase}
    ranks = tuple(
        RankObservation(rank=rank, pid=rank, role="train", step=STEP, phases=phases) for rank in range(8)
    )
    lines = shown(render(observation(ranks=ranks, phases=phases))).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.lstrip().startswith(("0 ", "7 ")) for line in lines) == 2


def waited(scale: float) -> Latency:
    return Latency(
        num=214,
        p50_s=0.02 * scale,
        low_s=0.019 * scale,
        high_s=0.021 * scale,
        p95_s=0.03 * scale,
        p99_s=0.05 * scale,
    )


def test_a_program_that_generates_says_what_somebody_waits_for() -> None:
    found = Inference(
        requests_per_s=7.5,
        latency=waited(6),
        first_token=waited(1),
        between_tokens=waited(0.1),
        forwards_per_request=48,
    )
    seen = observation(inference=found, anchor=Anchor("request", 0))
    assert matches("observe_generates", render(seen))
    screen = shown(render(seen))
    rows = [" ".join(line.split()) for line in screen.splitlines()]
    assert "Requests: 7.50 requests/s" in screen
    assert "a request 214 120 ms 114 ms to 126 ms 180 ms 300 ms" in rows
    assert "next tokens 214 2.00 ms 1.90 ms to 2.10 ms 3.00 ms 5.00 ms" in rows
    assert "tokens  48 for each prompt" in screen
    assert max(map(len, screen.splitlines())) <= 80
    content: Any = SimpleNamespace(observation=seen, sets=(), tuning=None)
    section = step(content)
    assert section is not None
    table = next(
        block for block in section.blocks if isinstance(block, Table) and "Requests" in block.caption
    )
    assert table.rows[1] == ("first token", "214", "20.0 ms", "19.0 ms to 21.0 ms", "30.0 ms", "50.0 ms")


def test_a_program_that_failed_is_to_be_corrected_first() -> None:
    assert matches("observe_failed_next", render_next(observation(exit_code=3)))


def test_without_a_step_it_says_so() -> None:
    screen = shown(render(observation(step=None)))
    assert screen.startswith("No step was measured.\n\nnot measured  transfer: the program keeps")


@pytest.mark.parametrize("word", ["[bold]", "[/]"])
def test_brackets_are_shown_as_they_are(word: str) -> None:
    screen = shown(render(observation(coverage=(Coverage(word, f"why {word}"),))))
    assert f"{word}: why {word}" in screen


@pytest.mark.parametrize(("num", "told"), [(5, False), (19, False), (20, True)])
def test_percentiles_are_of_enough_steps(num: int, told: bool) -> None:
    seen = observation(step=msgspec.structs.replace(STEP, num=num))
    assert ("p95 " in shown(render(seen))) == told
