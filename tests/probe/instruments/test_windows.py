"""When a process starts and ends an instrument, and what it leaves."""

from __future__ import annotations

import importlib
import pkgutil
import threading
import time
from pathlib import Path

import pytest

from hotloop.observe.decode.instrument_files import read_deep
from hotloop.observe.decode.spans import timelines
from hotloop.probe import instruments
from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_DONE,
    DEEP_EVERY,
    DEEP_HOLDS,
    DEEP_KIND,
    DEEP_MS,
    DEEP_SLOT,
    ControlPage,
)
from hotloop.probe.control.step_boundary import Boundary
from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.events import Kind
from hotloop.probe.windows import profiling_windows
from hotloop.probe.windows.profiling_windows import install


class Program:
    """A program with a probe whose steps are taken by hand."""

    def __init__(self, folder: Path, *instruments: str) -> None:
        self.folder = folder
        self.page = ControlPage.create(folder / "control")
        orders = tuple(
            {"name": name.lower(), "module": f"{__package__}.counting", "cls": name} for name in instruments
        )
        self.probe = Probe(ProbeConfig(folder=str(folder), instruments=orders))
        install(self.probe)
        self.wish(0, Kind.OPTIMIZER, 0, 1)

    @property
    def boundary(self) -> Boundary:
        """Its step boundary."""
        return self.probe.boundary

    def wish(self, number: int, kind: Kind = Kind.OPTIMIZER, slot: int = 0, every: int = 1) -> None:
        """Ask for an instrument, as the launcher does."""
        for at, value in ((DEEP_KIND, kind), (DEEP_SLOT, slot), (DEEP_EVERY, every), (DEEP, number)):
            self.page.numbers[at] = value

    def train(self, num: int, kind: Kind = Kind.OPTIMIZER, slot: int = 0) -> None:
        """Take steps."""
        for _ in range(num):
            self.boundary.ended(kind, slot)

    @property
    def done(self) -> int:
        """What the process has noted on the page."""
        return self.page.rows()[0][DEEP_DONE]


def test_nothing_happens_unasked(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.train(5)
    assert program.done == 0
    assert read_deep(tmp_path, "counting") == []


def test_a_window_of_whole_steps(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1)
    program.train(4)
    assert program.done == 0, "it began at the first boundary and has seen three steps"
    program.train(1)
    assert program.done == 1
    program.train(3)
    (file,) = read_deep(tmp_path, "counting")
    assert (file.steps, file.value, file.error) == (4, {"num": 4}, None)


def test_one_instrument_after_the_other(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting", "Breaking")
    program.wish(1)
    program.train(6)
    program.wish(2)
    program.train(6)
    assert program.done == 2
    (file,) = read_deep(tmp_path, "breaking")
    assert (file.value, file.error) == (None, "ValueError: broken")


def test_an_instrument_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    program = Program(tmp_path, "Refusing")
    program.wish(1)
    program.train(1)
    (file,) = read_deep(tmp_path, "refusing")
    assert program.done == 1
    assert file.error is not None
    assert "profiles itself" in file.error


@pytest.mark.parametrize(("every", "slots"), [(1, (0, 1)), (3, (0, 0, 0))])
def test_a_step_is_what_the_anchor_says(tmp_path: Path, every: int, slots: tuple[int, ...]) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1, Kind.OPTIMIZER, slots[-1], every)
    for _ in range(6):
        for slot in slots:
            program.train(1, slot=slot)
    (file,) = read_deep(tmp_path, "counting")
    assert file.steps == 4


def test_a_result_that_cannot_be_written_says_so_at_once(tmp_path: Path) -> None:
    program = Program(tmp_path, "Unwritable")
    program.wish(1)
    program.train(6)
    assert program.done == 1
    (file,) = read_deep(tmp_path, "unwritable")
    assert file.value is None
    assert file.error is not None
    assert "could not be written: TypeError" in file.error


def test_a_program_that_ends_in_a_window_leaves_what_was_seen(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1)
    program.train(3)
    program.probe.at_exit()
    (file,) = read_deep(tmp_path, "counting")
    assert (file.steps, file.value) == (2, {"num": 2})


def test_a_wish_that_is_taken_back_ends_the_window(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1)
    program.train(3)
    program.wish(0)
    program.train(1)
    assert [file.steps for file in read_deep(tmp_path, "counting")] == [2]


def test_a_fork_has_no_window(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1)
    program.train(2)
    program.probe.after_fork()
    program.probe.at_exit()
    assert read_deep(tmp_path, "counting") == []


def test_the_window_is_in_the_records(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.probe.recorder.own_thread()
    program.wish(1)
    program.train(6)
    program.probe.recorder.flush()
    (timeline,) = timelines(tmp_path, {}).values()
    ((number, begin_s, end_s),) = timeline.deep
    (file,) = read_deep(tmp_path, "counting")
    assert number == 1
    assert begin_s <= file.begin_ns * 1e-9 <= file.end_ns * 1e-9 <= end_s
    assert {span.kind for span in timeline.spans} <= {Kind.PAUSE}, "it is no span: it nests in nothing"


def test_a_window_that_was_not_ended_by_the_instrument_says_so(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.wish(1)
    program.train(6)
    assert not read_deep(tmp_path, "counting")[0].cut
    program.wish(0)
    program.train(1)
    program.wish(1)
    program.train(3)
    program.probe.at_exit()
    assert read_deep(tmp_path, "counting")[0].cut


def test_a_window_takes_no_longer_than_the_launcher_has_time(tmp_path: Path) -> None:
    program = Program(tmp_path, "Counting")
    program.page.numbers[DEEP_MS] = 1
    program.wish(1)
    program.train(1)
    time.sleep(0.01)
    program.train(1)
    assert program.done == 1
    assert read_deep(tmp_path, "counting")[0].steps == 1


@pytest.mark.parametrize(("first", "between"), [("Counting", 0), ("Profiling", 1)])
def test_a_step_lies_between_two_windows_where_the_first_profiles(
    tmp_path: Path, first: str, between: int
) -> None:
    program = Program(tmp_path, first, "Counting")
    program.page.numbers[DEEP_HOLDS] = 1
    program.wish(1)

    def order() -> None:
        while not program.page.rows() or program.done != 1:
            time.sleep(0.001)
        program.page.numbers[DEEP] = 2

    launcher = threading.Thread(target=order)
    launcher.start()
    program.train(8 + between)  # one at which the first begins, and four for each
    assert program.done == 1
    program.train(1)
    launcher.join()
    assert program.done == 2


def test_whatever_runs_torch_s_profiler_says_so() -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(instruments.__path__, f"{instruments.__name__}.")
    ]
    kinds = {
        each
        for module in modules
        if hasattr(module, "TorchProfiler")
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Instrument) and each is not Instrument
    }
    assert len(kinds) >= 4
    assert all(each.profiles for each in kinds)


def test_a_launcher_that_is_gone_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling_windows, "HOLD_S", 0.01)
    program = Program(tmp_path, "Counting")
    program.page.numbers[DEEP_HOLDS] = 1
    program.wish(1)
    program.train(8)
    assert program.done == 1
