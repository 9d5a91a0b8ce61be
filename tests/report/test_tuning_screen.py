"""What `hotloop tune` shows, letter by letter."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.model.optimization import NOT_ASKED, Refusal
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Contention, LikelyPlan, OwnRun, TuneResult
from hotloop.report.sections.tuned import smallest_difference
from hotloop.report.terminal.tuning import render, render_next, what_is_on
from hotloop.stats.empty_plan import why_empty

from .results import COMMAND, STEPS, empty, full, shown
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


def test_a_proven_whole_whose_parts_are_estimates() -> None:
    steps = tuple(msgspec.structs.replace(step, proven=False) for step in STEPS)
    plan = msgspec.structs.replace(full().plan, steps=steps)
    assert matches("tune_whole", render(full(plan=plan)))


def test_where_a_gain_may_be_a_loss_it_says_so() -> None:
    steps = (msgspec.structs.replace(STEPS[0], caution="it may cost time"), STEPS[1])
    plan = msgspec.structs.replace(full().plan, steps=steps)
    assert "\ncaution   it may cost time\n" in shown(render(full(plan=plan)))


@pytest.mark.parametrize(("training_s", "said"), [(0.4, True), (2.0, False)])
def test_a_run_of_few_steps_is_mostly_start_up(training_s: float, said: bool) -> None:
    run = OwnRun(num_steps=500, wall_s=2.9, training_s=training_s)
    baseline = msgspec.structs.replace(full().baseline, own_run=run)
    screen = " ".join(shown(render(full(baseline=baseline))).split())
    told = "run your program ended after 500 steps, which took 400 ms of its 2.90 s: the gain is that of its steps"
    assert (told in screen) == said


def test_an_empty_plan() -> None:
    assert matches("tune_empty", render(empty()))


def test_a_plan_that_could_not_be_proven_in_time_is_no_lack_of_trials() -> None:
    refused = (Refusal("channels_last", "not proven when confirmed: times varied too much to tell"),)
    noisy = Contention(num_blocks=17, num_void=3, num_noisy=14, max_foreign_share=0.89)
    screen = shown(render(empty(trials=(), refused=refused, contention=noisy)))
    said = (
        "No change was proven faster: beside other processes what was tried could not be proven: the time was too "
        "short (--budget gives more)."
    )
    assert said in " ".join(screen.split())


NOT_TRIED = Refusal("compile", "not tried: too little time was left (--budget)")


@pytest.mark.parametrize(
    ("refused", "wall_s", "says"),
    [
        ((NOT_TRIED,), 590.0, "nothing was tried: the time was too short"),
        (
            (NOT_TRIED,),
            420.0,
            "nothing was tried: a trial and its proof need more than the 3.0 min that are left",
        ),
        ((NOT_TRIED, Refusal("tf32", "0.99 [0.97, 1.01]", tried=True)), 590.0, "what was tried could not be"),
        ((Refusal("tf32", "does not apply: no GPU"),), 20.0, "there was nothing to try"),
    ],
    ids=["no time", "time left", "something was tried", "nothing applies"],
)
def test_what_was_tried_and_the_time_that_was_left_are_said_as_they_were(
    refused: tuple[Refusal, ...], wall_s: float, says: str
) -> None:
    result = empty(trials=(), refused=refused, wall_s=wall_s, budget_s=600.0)
    assert says in why_empty(result)


def test_what_others_disturbed_is_not_said_to_be_no_better() -> None:
    noisy = Contention(num_blocks=11, num_void=2, num_noisy=5, max_foreign_share=0.48)
    screen = " ".join(shown(render(empty(contention=noisy))).split())
    said = "other processes disturbed 7 of 11 blocks (up to 48% of the CPU), too many to tell."
    assert f"No change was proven faster: {said}" in screen
    assert "none beat" not in screen


def test_an_interrupted_session() -> None:
    screen = shown(render(empty(interrupted=True, floor=None, trials=())))
    assert screen.startswith("No change was proven faster: the session was interrupted before.")
    assert "measured  40 blocks in 6.9 min\n          interrupted: continue with --resume\n" in screen


def test_an_interrupted_session_with_a_plan_shows_the_plan() -> None:
    screen = shown(render(full(interrupted=True)))
    assert "confirmed" in screen
    assert "interrupted: continue with --resume" in screen


def test_what_many_have_in_common_is_said_once() -> None:
    refused = [Refusal(f"optimization_{number}", "left out (--skip)") for number in range(5)]
    result = empty(refused=(*refused, Refusal("compile", "slower: 0.5 in 2 blocks")), trials=())
    screen = shown(render(result, verbose=True))
    said = "No change was proven faster: what was tried could not be proven: the time was too short"
    assert " ".join(screen.split()).startswith(said)
    assert screen.count("left out (--skip)") == 1
    assert "compile          slower: 0.5 in 2 blocks" in screen
    assert "5 optimizations  left out (--skip): optimization_0, optimization_1" in screen


def test_of_what_was_asked_for_by_name_the_reason_is_shown_and_nothing_of_the_rest() -> None:
    others = [Refusal(f"optimization_{number}", NOT_ASKED) for number in range(5)]
    refused = (*others, Refusal("tf32", "does not apply: the program runs on the CPU"))
    screen = shown(render(empty(refused=refused, trials=())))
    assert "left out  tf32: does not apply: the program runs on the CPU" in screen
    assert "optimization_0" not in screen
    assert "--verbose" not in screen


def test_the_memory_of_all_processes_comes_first_and_the_largest_one_with_verbose() -> None:
    assert "memory    2.00 GiB before, 1.17 GiB after, all processes together (PSS)" in shown(render(full()))
    verbose = " ".join(shown(render(full(), verbose=True)).split())
    assert "2.00 GiB before, in 5 processes together, 1.17 GiB after, in 3 processes together (PSS" in verbose
    assert "1.00 GiB before, 800 MiB after, at the peak of the process that holds most" in verbose
    alone = shown(render(full(tree_peak=(None, None))))
    assert "memory    1.00 GiB before, 800 MiB after, largest process" in alone


@pytest.mark.parametrize("num", [1, 2, 4, 6])
def test_the_first_screen_is_thirty_lines(num: int) -> None:
    """With everything that it may have to say, and what to type next."""
    step = msgspec.structs.replace(
        STEPS[0], proven=False, caution="on a quiet machine it may cost time there"
    )
    steps = tuple(msgspec.structs.replace(step, name=f"optimization_{at}") for at in range(num))
    result = full(
        plan=msgspec.structs.replace(full().plan, steps=steps),
        contention=Contention(num_blocks=30, num_void=4, num_noisy=25, max_foreign_share=0.82),
        refused=tuple(Refusal(f"optimization_{at}", f"no difference: {at}") for at in range(60)),
        coverage=tuple(f"gap {at}" for at in range(9)),
    )
    lines = shown(render(result)).splitlines() + shown(render_next(result, None)).splitlines()
    assert len(lines) <= 30, "\n".join(lines)


@pytest.mark.parametrize("result", [full(), empty(), full(refused=(Refusal("n" * 90, "r" * 200),))])
@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_screen(result: TuneResult, width: int) -> None:
    assert max(map(len, shown(render(result), width).splitlines())) <= width


@pytest.mark.parametrize("word", ["[bold]", "[/]", "[red]x[/red]", "\\[", ":smile:"])
def test_what_looks_like_markup_is_shown_as_it_is(word: str) -> None:
    result = full(refused=(Refusal(f"name{word}", f"reason {word}"),), coverage=(word,), confirmation=word)
    screen = shown(render(result, verbose=True))
    assert f"reason {word}" in screen
    assert screen.count(word) == 4
    assert "\\[1.42" not in screen


def test_what_to_type_next_can_be_pasted() -> None:
    assert matches("tune_next", render_next(full(), None))
    assert matches("tune_next_long", render_next(full(command=LONG), "my plan.toml"))
    assert matches("tune_next_empty", render_next(empty(), None))


def test_what_is_on_fits_a_line() -> None:
    assert what_is_on(full().plan) == (
        "on: loader_workers (num_workers=2 persistent_workers=True), autocast_bf16 (2.10x when it was proven)"
    )
    assert what_is_on(empty().plan) == "the plan is empty: nothing is on"


def test_what_does_not_apply_is_one_line_unless_asked() -> None:
    short = " ".join(shown(render(full())).split())
    assert "left out 6 optimizations, 1 of them not applicable here: see --verbose or the report" in short
    assert "there is no accelerator to copy to" in shown(render(full(), verbose=True))


def test_what_is_likely_stands_apart_from_what_is_proven() -> None:
    plan = LikelyPlan(
        steps=STEPS,
        ratio=1.8,
        low=0.98,
        high=2.9,
        reason="two pairs of fresh processes were measured, three are needed",
        resume="hotloop tune --resume --budget 10m python train.py --epochs 3",
    )
    assert matches("tune_likely", render(empty(likely=(plan,))))


def test_no_smaller_difference_is_claimed_than_the_intervals_could_tell() -> None:
    wide = tuple(
        msgspec.structs.replace(trial, ratio=Ratio(1.0, 0.9, 1.1)) for trial in full().trials if trial.ratio
    )
    assert wide
    reached = smallest_difference(empty(trials=wide, floor=0.01))
    assert reached == pytest.approx((1.1 / 0.9) ** 0.5 - 1)
    assert smallest_difference(empty(trials=(), floor=0.01)) == 0.01
    assert smallest_difference(empty(trials=wide, floor=None)) is None
