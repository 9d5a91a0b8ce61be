"""What `hotloop tune` shows, letter by letter."""

from __future__ import annotations

import pytest

from hotloop.model.optimization import Refusal
from hotloop.model.tuning import TuneResult
from hotloop.report.terminal.tuning import render, render_next

from .results import COMMAND, empty, full, shown

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
    assert shown(render(full())) == FULL


def test_an_empty_plan() -> None:
    assert shown(render(empty())) == EMPTY


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


FULL = """\
baseline  123 ms a step [121 ms, 126 ms], 519 samples/s

as it was                                    1.00x ██████████
loader_workers            x1.50 [1.42, 1.58] 1.50x ████████████████
  num_workers=2
  persistent_workers=True
autocast_bf16             x1.40 [1.33, 1.47] 2.10x ██████████████████████
confirmed                       [1.98, 2.23] 2.10x

learning  the same, 64 steps compared: mean deviation 0.00024 (limit 0.0078);
          lasting deviation 0.00014 (limit 0.0078); worst window 0.00081 (limit
          0.023); floor from 2 runs of the original
memory    1.00 GiB before, 800 MiB after
one-off   loader_workers earns its start-up back after 1,240 steps

not in the plan
  pinned_memory   does not apply: there is no accelerator to copy to
  loader_workers  num_workers=1: loader_workers(num_workers=2,
                  persistent_workers=True) in its place was faster
  channels_last   no difference: 1.004 [0.962, 1.047]
  thread_count    num_threads=1: slower: 0.62 in 2 blocks
                  num_threads=3: no difference: 0.993 [0.951, 1.037]
  compile         failed (crash): the program failed with exit code 1:
                  torch._inductor.exc.InductorError:
                  [bold]CppCompileError[/bold]: C++ compile error

measured  3 sets of fresh processes, each 6 blocks an arm in ABBA order; 95%
          interval over sets and blocks, valid at every look
          floor of this machine 1.2%, 2 trials in 6.9 min
          others were busy (up to 43.0% of the machine): 4 of 120 blocks
          repeated, 1 kept noisy
          isolation: user namespaces are not permitted here, so child processes
          may write to your files"""
EMPTY = """\
baseline  123 ms a step [121 ms, 126 ms], 519 samples/s

the plan is empty: nothing that was tried made this program provably faster

not in the plan
  channels_last  no difference: 1.004 [0.962, 1.047]
  thread_count   num_threads=1: slower: 0.62 in 2 blocks

measured  no plan held, so there is no number to quote
          floor of this machine 1.2%, 2 trials in 6.9 min"""
