"""Ranks of one job: the same steps of all, and who waits for whom, by when they come to the collectives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.model.deep import HostLine
from hotloop.model.observation import Anchor, Phase, RankObservation
from hotloop.observe.steps.job import observe_ranks, phases_of
from hotloop.observe.steps.rhythm import find_anchor, fold, in_loop_order
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.record.events import Kind, begin, end
from hotloop.stats.late_ranks import late_ranks

from .synthetic import MS, Script

ANCHOR = Anchor("optimizer", 0)


class Job:
    """Two ranks in step: what synchronizes ends on both when it would on the last that came."""

    def __init__(self, folder: Path) -> None:
        self.ranks = [Script(folder, pid) for pid in (1, 2)]

    def each(self, kind: Kind, *ms: float) -> Job:
        """Write a span of its own length on each rank."""
        for script, own in zip(self.ranks, ms, strict=True):
            script.span(kind, own)
        return self

    def wait(self, *ms: float) -> Job:
        for script, own in zip(self.ranks, ms, strict=True):
            script.wait(own)
        return self

    def together(self, kind: Kind, ms: float) -> Job:
        """Write a span that lasts so long after the last rank has come."""
        for script in self.ranks:
            script.mark(begin(kind, 0))
        until = max(script.now for script in self.ranks) + int(ms * MS)
        for script in self.ranks:
            script.now = until
            script.mark(end(kind, 0))
        return self

    def seen(self, **facts: object) -> list[RankObservation]:
        timelines = {script._pid: script.timeline() for script in self.ranks}
        processes = {1: {"rank": 0, **facts}, 2: {"rank": 1, **facts}}
        return list(observe_ranks(timelines, {}, ANCHOR, processes))


def _shares_ms(rank: RankObservation) -> dict[str, float]:
    assert rank.step is not None
    whole = rank.step.whole_s
    return {phase.value: round(1e3 * whole * one.share, 3) for phase, one in rank.phases.items()}


def test_a_rank_that_sleeps_is_the_cause_and_the_other_waits(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 1, 1).each(Kind.FORWARD, 2, 2).wait(0, 80)  # before the backward: the loss
        job.together(Kind.BACKWARD, 3).each(Kind.OPTIMIZER, 1, 1).wait(1, 1)
    first, second = job.seen()
    assert _shares_ms(first) == {
        "data": 1, "forward": 2, "backward": 3, "communication": 80, "optimizer": 1, "other": 1,
    }  # fmt: skip
    assert _shares_ms(second) == {"data": 1, "forward": 82, "backward": 3, "optimizer": 1, "other": 1}


@pytest.mark.parametrize("phase", [Kind.DATA, Kind.FORWARD])
def test_the_late_rank_and_what_makes_it_late(tmp_path: Path, phase: Kind) -> None:
    job = Job(tmp_path)
    for _ in range(20):
        for kind in (Kind.DATA, Kind.FORWARD):
            job.each(kind, 2, 42 if kind is phase else 2)
        job.together(Kind.BACKWARD, 10).each(Kind.OPTIMIZER, 1, 1)
    late = late_ranks(job.seen())
    assert late is not None
    assert (late.ranks, late.phase.value) == ((1,), phase.name.lower())
    assert (late.excess_s, late.spent_s, late.others_s) == pytest.approx((0.040, 0.042, 0.002))


@pytest.mark.parametrize(
    ("phase", "lines", "at"),
    [
        (Kind.DATA, [("train", "forward", 1), ("train", "data", 2)], 2),
        (Kind.DATA, [("train", "data", 1), ("worker", None, 3)], 3),
        (Kind.FORWARD, [("worker", None, 3), ("train", "forward", 1)], 1),
        (Kind.FORWARD, [("train", "data", 2)], None),
    ],
)
def test_the_line_is_of_the_late_rank_and_of_the_phase_that_makes_it_late(
    tmp_path: Path, phase: Kind, lines: list[tuple[str, str | None, int]], at: int | None
) -> None:
    job = Job(tmp_path)
    for _ in range(20):
        for kind in (Kind.DATA, Kind.FORWARD):
            job.each(kind, 2, 42 if kind is phase else 2)
        job.together(Kind.BACKWARD, 10).each(Kind.OPTIMIZER, 1, 1)
    first, second = job.seen()
    found = tuple(
        HostLine(
            path="t.py", line=line, function="f", process=process, phase=name, share=0.5, spent_s=1.0, num=9
        )
        for process, name, line in lines
    )
    late = late_ranks([first, msgspec.structs.replace(second, lines=found)])
    assert late is not None
    assert (late.line.line if late.line else None) == at


def test_a_forward_in_which_ranks_wait_for_buffers_hides_nobody(tmp_path: Path) -> None:
    """DDP sends rank 0's buffers in the forward: there the others wait for it."""
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 40, 1).together(Kind.FORWARD, 5).each(Kind.BACKWARD, 9, 9).each(
            Kind.OPTIMIZER, 1, 1
        )
    late = late_ranks(job.seen())
    assert late is not None
    assert (late.ranks, late.phase) == ((0,), Phase.DATA)
    assert late.excess_s == pytest.approx(0.039)


def test_a_wait_in_a_collective_that_the_forward_calls_counts_once(tmp_path: Path) -> None:
    """FSDP gathers its parameters in the forward: the wait for a rank without a batch took all computing with it."""
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 1, 21)
        for script in job.ranks:
            script.mark(begin(Kind.FORWARD, 0))
        job.together(Kind.COMMUNICATION, 2).wait(5, 5)
        for script in job.ranks:
            script.mark(end(Kind.FORWARD, 0))
        job.each(Kind.BACKWARD, 9, 9).each(Kind.OPTIMIZER, 1, 1)
    first, _ = job.seen()
    assert _shares_ms(first) == {
        "data": 1, "forward": 5, "backward": 9, "communication": 22, "optimizer": 1,
    }  # fmt: skip


def test_ranks_that_do_not_wait_for_each_other_have_no_communication(tmp_path: Path) -> None:
    """They drift apart, and nothing brings them together."""
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 1, 1.1).each(Kind.FORWARD, 2, 2).each(Kind.BACKWARD, 3, 3).each(
            Kind.OPTIMIZER, 1, 1
        )
    assert all(Phase.COMMUNICATION not in rank.phases for rank in job.seen())


def test_what_ddp_measured_holds_the_wait_and_counts_once(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 1, 21).each(Kind.FORWARD, 2, 2).together(Kind.BACKWARD, 10).each(
            Kind.OPTIMIZER, 1, 1
        )
    first, second = job.seen(exposed_communication=[24 / 30])
    assert _shares_ms(first)["communication"] == pytest.approx(24)
    assert _shares_ms(first)["backward"] == pytest.approx(6)
    assert _shares_ms(second)["backward"] == pytest.approx(2), "of its 10 ms"


def test_what_ddp_measured_of_a_rare_wait_is_no_part_of_every_step(tmp_path: Path) -> None:
    """Every tenth step one rank was late; DDP's average of ten iterations took the others' whole backward."""
    job = Job(tmp_path)
    for number in range(40):
        job.each(Kind.DATA, 1, 301 if number % 10 == 9 else 1).each(Kind.FORWARD, 2, 2)
        job.together(Kind.BACKWARD, 10).each(Kind.OPTIMIZER, 1, 1)
    first, second = job.seen(exposed_communication=[*[0.4] * 8, 304 / 310])
    assert _shares_ms(first)["backward"] == pytest.approx((9 * 6 + 10) / 10, rel=0.01), "of 39 steps"
    assert _shares_ms(second)["backward"] == pytest.approx(6)


def test_a_wait_in_the_forward_is_none_of_what_ddp_measured_of_the_backward(tmp_path: Path) -> None:
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.DATA, 40, 1).together(Kind.FORWARD, 5).each(Kind.BACKWARD, 9, 9).each(
            Kind.OPTIMIZER, 1, 1
        )
    _, second = job.seen(exposed_communication=[4 / 9])
    assert _shares_ms(second)["backward"] == pytest.approx(5)
    assert _shares_ms(second)["communication"] == pytest.approx(43)


def test_ddp_measures_one_backward_of_several(tmp_path: Path) -> None:
    """Eight reductions a step were 4% of it, in truth 40%."""
    job = Job(tmp_path)
    for _ in range(20):
        for _ in range(4):
            job.each(Kind.FORWARD, 2, 2).together(Kind.BACKWARD, 10)
        job.each(Kind.OPTIMIZER, 1, 1)
    every, last = (job.seen(exposed_communication=[0.6], reduced=share)[0] for share in (1.0, 0.25))
    assert _shares_ms(every)["communication"] == pytest.approx(24)
    computed = 4 * 10 / (3 + 1 / 0.4)  # three passes that compute, and one that waits beside
    assert _shares_ms(last)["communication"] == pytest.approx(computed * 0.6 / 0.4, rel=1e-3)


def test_steps_of_a_trial_are_split_like_those_that_are_observed(tmp_path: Path) -> None:
    """The report showed communication in the step that was observed, and none in that of the proof."""
    job = Job(tmp_path)
    for _ in range(20):
        job.each(Kind.PAUSE, 30, 30).each(Kind.DATA, 1, 21).each(Kind.FORWARD, 2, 2)
        job.together(Kind.BACKWARD, 10).each(Kind.OPTIMIZER, 1, 1)
    records = {script._pid: script.timeline() for script in job.ranks}
    steps = {pid: windows(one, ANCHOR)[4:] for pid, one in records.items()}
    processes = {pid: {"rank": rank, "exposed_communication": [0.8]} for rank, pid in enumerate(records)}
    found = phases_of(1, steps, records, processes)
    assert found[Phase.COMMUNICATION].share == pytest.approx(24 / 34)
    assert found[Phase.BACKWARD].share == pytest.approx(6 / 34)
    alone = phases_of(1, steps, records, {})
    assert Phase.COMMUNICATION not in alone


def test_all_ranks_are_measured_over_the_same_steps(tmp_path: Path) -> None:
    """The machine was slow for the first half, and one rank's record begins with an epoch of its own."""
    job = Job(tmp_path)
    for number in range(40):
        if number in (5, 12, 18):
            job.ranks[0].span(Kind.EVALUATE, 30)
        slow = 3 if number < 20 else 1
        job.each(Kind.DATA, 1, 1).each(Kind.FORWARD, 2 * slow, 2 * slow)
        job.together(Kind.BACKWARD, 3 * slow).each(Kind.OPTIMIZER, 1, 1)
    first, second = job.seen()
    assert first.step is not None
    assert second.step is not None
    assert first.step.num == second.step.num
    assert first.step.whole_s == pytest.approx(second.step.whole_s, rel=0.05)


def test_a_collective_after_the_optimizer_ends_the_turn(tmp_path: Path) -> None:
    script = Script(tmp_path)
    for _ in range(20):
        script.span(Kind.DATA, 1).span(Kind.FORWARD, 2).span(Kind.BACKWARD, 3).span(Kind.OPTIMIZER, 1)
        script.span(Kind.COMMUNICATION, 2)
    timeline = script.timeline()
    anchor = find_anchor(timeline.spans)
    (rank,) = observe_ranks({7: timeline}, {}, anchor, {})
    assert rank.step is not None
    assert rank.step.rhythm == ("data", "forward", "backward", "optimizer", "communication")
    assert fold(in_loop_order(["communication"] * 2)) == ("2x(communication)",)
