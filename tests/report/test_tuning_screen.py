"""What `hotloop tune` shows, letter by letter."""

from __future__ import annotations

import pytest

from hotloop.model.optimization import Refusal
from hotloop.model.tuning import TuneResult
from hotloop.report.terminal.tuning import render, render_next

from .results import COMMAND, empty, full, shown
from .snapshots import matches

LONG = (
    *COMMAND,
    "--data",
    "/a/very/long/path/that/goes/on/and/on",
    "--name",
    "with blanks",
    "--rate",
    "0.001",
)


def test_a_full_result() -> None:
    assert matches("tune", render(full()))


def test_an_empty_plan() -> None:
    assert matches("tune_empty", render(empty()))


def test_an_interrupted_session() -> None:
    screen = shown(render(empty(interrupted=True, floor=None, trials=())))
    assert "the plan is empty: interrupted before anything was proven" in screen
    assert "floor of this machine not measured, 0 trials in 6.9 min\n" in screen
    assert screen.endswith("          interrupted: go on with --resume")


def test_an_interrupted_session_with_a_plan_shows_the_plan() -> None:
    screen = shown(render(full(interrupted=True)))
    assert "confirmed" in screen
    assert "interrupted: go on with --resume" in screen


def test_what_many_have_in_common_is_said_once() -> None:
    refused = [Refusal(f"optimization_{number}", "not asked for (--only)") for number in range(5)]
    screen = shown(
        render(empty(refused=(*refused, Refusal("compile", "slower: 0.5 in 2 blocks")), trials=()))
    )
    assert screen.splitlines()[2:8] == [
        "the plan is empty: there was nothing to try, or no time for it",
        "",
        "not in the plan",
        "  compile  slower: 0.5 in 2 blocks",
        "  not asked for (--only): optimization_0, optimization_1, optimization_2,",
        "  optimization_3, optimization_4",
    ]


@pytest.mark.parametrize("result", [full(), empty(), full(refused=(Refusal("n" * 90, "r" * 200),))])
@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_screen(result: TuneResult, width: int) -> None:
    assert max(map(len, shown(render(result), width).splitlines())) <= width


@pytest.mark.parametrize("word", ["[bold]", "[/]", "[red]x[/red]", "\\[", ":smile:"])
def test_what_looks_like_markup_is_shown_as_it_is(word: str) -> None:
    result = full(refused=(Refusal(f"name{word}", f"reason {word}"),), coverage=(word,), confirmation=word)
    screen = shown(render(result))
    assert f"reason {word}" in screen
    assert screen.count(word) == 4
    assert "\\[1.42" not in screen


def test_the_command_to_go_on_with_can_be_pasted() -> None:
    assert shown(render_next(full(), None)) == ("\nrun it for real\nhotloop run python train.py --epochs 3")
    assert shown(render_next(full(command=LONG), "my plan.toml")) == (
        "\nrun it for real\n"
        "hotloop run --plan 'my plan.toml' python train.py --epochs 3 --data \\\n"
        "    /a/very/long/path/that/goes/on/and/on --name 'with blanks' --rate 0.001"
    )
