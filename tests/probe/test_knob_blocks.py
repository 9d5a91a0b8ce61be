"""The course of a what-if run, on a fake clock: blocks on and off in turn, and what fails left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.optimize.registry import get
from hotloop.probe.activation.knob import Bench, Knob
from hotloop.probe.activation.order import made_to_order
from hotloop.probe.control import running_clock
from hotloop.probe.control.contention import BlockContention
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.windows.knob_blocks import Shape, WhatIf, memory

SHAPE = Shape(warm_steps=4, num_steps=5, discard=2, rounds=3)


class World:
    """A program whose steps take so long, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step_s = 1.0
        self.foreign_s = 0.0
        """Processor seconds that others have had."""
        self.busy_until = 0.0

    def tick(self) -> None:
        self.now += self.step_s
        self.foreign_s += self.step_s * 64 if self.now < self.busy_until else 0.0

    def clock(self) -> int:
        return round(self.now * 1e9)


class Faster(Knob):
    """Halves the step while on, or does what it is told to it."""

    def __init__(self, world: World, *, fails_at: int = 99, acts: bool = True, step_s: float = 0.5) -> None:
        self.name = "faster"
        self.on_s = step_s
        self.world = world
        self.switches = 0
        self.fails_at = fails_at
        self.acts = acts

    def switch(self, on: bool) -> None:
        self.switches += 1
        if self.switches == self.fails_at:
            raise ValueError("it does not fit")
        self.world.step_s = self.on_s if on else 1.0

    def effect(self) -> tuple[bool, str]:
        return self.acts, "seen"


class FromStart(Faster):
    """Acts in a process only in which it is on from the start."""

    from_start = True


class Reads(Faster):
    """Reads for seven seconds where it is switched on."""

    def switch(self, on: bool) -> None:
        self.world.now += 7.0 if on else 0.0
        super().switch(on)


class Alone(Bench):
    name = "alone"

    def run(self) -> dict[str, Any]:
        return {"per_s": 7}


def course(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    world: World,
    *acting: Any,
    evaluates_every: int = 1000,
    shape: Shape = SHAPE,
) -> dict[str, Any]:
    """Run three hundred steps, some with an evaluation of thirty steps' time before them; return what was written."""
    monkeypatch.setattr(running_clock, "monotonic_ns", world.clock)
    monkeypatch.setattr(BlockContention, "look", lambda _: (world.now, world.foreign_s))
    probe = Probe(ProbeConfig(folder=str(tmp_path)))
    probe.activations.extend(acting)
    driver = WhatIf(probe, shape)
    for step in range(1, 301):
        if step % evaluates_every == 0:
            world.now += 30.0
            probe.boundary.num_interrupted += 1
        world.tick()
        probe.boundary.steps = step
        driver.on_step(step)
    assert not [note for note in probe.facts.notes if note["where"] == "whatif"]
    written: dict[str, Any] = json.loads(next(tmp_path.glob("whatif-*.json")).read_text())
    return written


def test_each_block_with_it_on_stands_between_two_with_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world))
    assert [knob for knob, _ in written["blocks"]] == [None, *(["faster", None] * 3)]
    wanted = [[1.0] * 5, *([[0.5] * 5, [1.0] * 5] * 3)]
    for (_, times), each in zip(written["blocks"], wanted, strict=True):
        assert times == pytest.approx(each)
    assert written["done"]
    assert written["effects"] == {"faster": [True, "seen"]}
    assert world.step_s == 1.0


def test_what_is_on_all_the_time_is_not_switched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples kept in memory were switched off after one block, and all others screened without them."""
    world = World()
    always = Faster(world)
    always.fixed = True
    always.switch(True)
    written = course(tmp_path, monkeypatch, world, always)
    assert always.switches == 1
    assert [knob for knob, _ in written["blocks"]] == [None]
    assert written["blocks"][0][1] == pytest.approx([0.5] * 5)


@pytest.mark.parametrize("knob", [False, True])
def test_an_order_says_whether_what_it_makes_is_switched(knob: bool) -> None:
    """The same class acts from the start of a process, and as a knob."""
    made = made_to_order(get("dataset_in_memory").order({}, knob=knob))
    assert isinstance(made, Knob)
    assert made.fixed != knob


@pytest.mark.parametrize("acts", [True, False])
def test_a_knob_that_needs_a_process_of_its_own_is_named_where_it_did_not_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, acts: bool
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, FromStart(world, acts=acts))
    assert written["from_start"] == ([] if acts else ["faster"])


def test_what_a_switch_takes_belongs_to_its_first_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Reads(world))
    seconds, steps = written["switched"]["faster"]
    assert seconds == pytest.approx(7.0 + 0.5 * steps)
    assert all(times == pytest.approx([0.5] * 5) for knob, times in written["blocks"] if knob)


def test_a_knob_that_fails_is_named_and_the_next_one_has_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    other = Faster(world)
    other.name = "other"
    written = course(tmp_path, monkeypatch, world, Faster(world, fails_at=1), other)
    assert written["failed"] == {"faster": "ValueError: it does not fit"}
    assert {knob for knob, _ in written["blocks"]} == {None, "other"}
    assert written["done"]


def test_a_knob_that_does_not_act_takes_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world, acts=False))
    assert [knob for knob, _ in written["blocks"]] == [None, "faster", None]


def test_a_block_that_others_disturbed_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.busy_until = 9.5
    written = course(tmp_path, monkeypatch, world, Faster(world))
    assert written["num_void"] == 1
    assert [knob for knob, _ in written["blocks"]] == [None, *(["faster", None] * 3)]


def test_on_a_machine_that_is_always_busy_blocks_are_kept_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.busy_until = 1e9
    written = course(tmp_path, monkeypatch, world, Faster(world))
    assert written["num_void"] >= 4
    assert written["num_noisy"] > 0


def test_benches_run_first_and_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Alone(), Faster(world))
    assert written["benches"] == {"alone": {"per_s": 7}}


def test_a_program_that_ends_early_leaves_the_knob_that_was_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    monkeypatch.setattr(running_clock, "monotonic_ns", world.clock)
    monkeypatch.setattr(BlockContention, "look", lambda _: (world.now, world.foreign_s))
    probe = Probe(ProbeConfig(folder=str(tmp_path)))
    probe.activations.append(Faster(world))
    driver = WhatIf(probe, SHAPE)
    for step in range(1, 15):
        driver.on_step(step)
    written = json.loads(next(tmp_path.glob("whatif-*.json")).read_text())
    assert written["current"] == "faster"
    assert not written["done"]


def test_steps_with_an_evaluation_now_and_then_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world), evaluates_every=9)
    spent = [step for _, times in written["blocks"] for step in times]
    assert max(spent) == pytest.approx(1.0)
    assert len(spent) < 5 * len(written["blocks"]), "some blocks had one"


def test_a_program_that_evaluates_in_most_steps_is_timed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world), evaluates_every=2)
    assert max(step for _, times in written["blocks"] for step in times) == pytest.approx(31.0)


def test_a_hold_is_known_with_what_lies_between_its_steps_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world), shape=PATTERNS, evaluates_every=7)
    assert max(step for _, times in written["holds"] for step in times) == pytest.approx(1.0)
    assert len(written["hold_whole_s"]) == len(written["holds"]) == 3
    assert max(written["hold_whole_s"]) > 2.0


PATTERNS = Shape(
    warm_steps=4, num_steps=8, discard=0, rounds=2, hold_steps=8, patterns=(("faster",), (), ("faster",))
)


def test_before_patterns_a_knob_has_one_block_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world), shape=PATTERNS)
    assert [knob for knob, _ in written["blocks"]] == [None, "faster", None]
    assert [on for on, _ in written["holds"]] == [["faster"], [], ["faster"]]


def test_a_knob_that_looks_hopeless_has_a_second_block_and_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    written = course(tmp_path, monkeypatch, world, Faster(world, step_s=1.5), shape=PATTERNS)
    assert [knob for knob, _ in written["blocks"]] == [None, "faster", None, "faster", None]
    assert not written["holds"]


def test_a_burst_of_others_does_not_make_a_knob_hopeless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    knob = Faster(world, step_s=1.5)
    switch = knob.switch

    def burst(on: bool) -> None:
        switch(on)
        knob.on_s = 0.5

    monkeypatch.setattr(knob, "switch", burst)
    written = course(tmp_path, monkeypatch, world, knob, shape=PATTERNS)
    assert [knob for knob, _ in written["blocks"]] == [None, "faster", None, "faster", None]
    assert [on for on, _ in written["holds"]] == [["faster"], [], ["faster"]]


def test_a_long_step_of_the_program_does_not_make_a_knob_hopeless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It draws its samples now and then, and did so in each block of the knob."""

    class Draws(World):
        num_on = 0

        def tick(self) -> None:
            self.num_on = self.num_on + 1 if self.step_s < 1 else 0
            self.now += 20.0 if self.num_on == 4 else 0.0
            super().tick()

    world = Draws()
    written = course(tmp_path, monkeypatch, world, Faster(world), shape=PATTERNS)
    assert max(max(times) for _, times in written["blocks"]) > 20.0
    assert written["holds"]


def test_steps_that_scatter_are_no_memory() -> None:
    assert memory([2.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) == 2
    assert memory([1.15, 1.15, 1.0, 1.0, 1.1, 1.0, 0.9, 1.12]) == 0
