"""Stacks of other threads: every line with its name, whatever it is called, and no frame object is made of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from hotloop.probe.instruments.frames import Frames, Line, Owner
from hotloop.probe.instruments.sampler import Sampler
from hotloop.probe.instruments.stacks import Stacks, lines_of


def _in_a_thread(
    work: Callable[[threading.Event, threading.Event], None],
) -> tuple[threading.Thread, threading.Event]:
    here, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, args=(here, leave), daemon=True)
    thread.start()
    assert here.wait(10)
    return thread, leave


def _inner(here: threading.Event, leave: threading.Event) -> None:
    here.set()
    leave.wait(30)


def _outer(here: threading.Event, leave: threading.Event) -> None:
    _inner(here, leave)


def _stack_of(thread: threading.Thread) -> list[Line]:
    stacks = Stacks()
    try:
        seen = dict(stacks.look())
    finally:
        stacks.close()
    assert thread.ident is not None
    return lines_of(seen[thread.ident])


def test_the_innermost_line_comes_first() -> None:
    thread, leave = _in_a_thread(_outer)
    lines = _stack_of(thread)
    leave.set()
    own = [line for line in lines if line.path == __file__]
    assert [line.function for line in own] == ["_inner", "_outer"]
    assert own[1].line == _outer.__code__.co_firstlineno + 1


def test_names_beyond_ascii(tmp_path: Path) -> None:
    code = "def größe(here, leave):\n    here.set()\n    leave.wait(30)\n"
    names: dict[str, Callable[..., None]] = {}
    path = str(tmp_path / "模型.py")
    exec(compile(code, path, "exec"), names)
    thread, leave = _in_a_thread(names["größe"])
    lines = _stack_of(thread)
    leave.set()
    assert Line(path, 3, "größe") in lines


def test_a_shorter_look_shows_nothing_of_a_longer_one() -> None:
    stacks = Stacks()
    try:
        threads = [_in_a_thread(_outer) for _ in range(5)]
        many = len(list(stacks.look()))
        for thread, leave in threads:
            leave.set()
            thread.join()
        assert len(list(stacks.look())) == many - 5
    finally:
        stacks.close()


def test_a_thread_without_python_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    written = b"""Thread 0x000000000000000a (most recent call first):
  <no Python frame>

Thread 0x000000000000000b (most recent call first):

Current thread 0x000000000000000c (most recent call first):
  File "train.py", line 3 in main
  ...
"""
    monkeypatch.setattr("faulthandler.dump_traceback", lambda file, all_threads: os.write(file, written))
    stacks = Stacks()
    try:
        seen = {ident: lines_of(stack) for ident, stack in stacks.look()}
    finally:
        stacks.close()
    assert seen == {12: [Line("train.py", 3, "main")]}


def test_the_sampler_says_whose_each_line_is() -> None:
    thread, leave = _in_a_thread(_outer)
    sampler = Sampler(only=thread.ident)
    sampler.start()
    while not sampler.value()["samples"]:
        leave.wait(0.01)
    sampler.end()
    leave.set()
    value = sampler.value()
    _, _, ident, number = value["samples"][0]
    frames = [value["frames"][one] for one in value["stacks"][number]]
    assert ident == thread.ident
    assert {frame[3] for frame in frames if frame[0] == __file__} == {"user"}
    assert {frame[3] for frame in frames if frame[0] == threading.__file__} == {"library"}


def _sleep(here: threading.Event, leave: threading.Event) -> None:
    here.set()
    while not leave.is_set():
        time.sleep(0.005)


def test_a_thread_that_sleeps_at_its_line_takes_no_time() -> None:
    thread, leave = _in_a_thread(_sleep)
    trainer = threading.get_ident()
    sampler = Sampler(trainer=trainer)
    sampler.start()
    while sum(sample[2] == trainer for sample in sampler.value()["samples"]) < 20:
        time.sleep(0.005)
    sampler.end()
    leave.set()
    spent = Counter[int]()
    for _, time_ns, ident, _ in sampler.value()["samples"]:
        spent[ident] += time_ns
    assert spent[thread.ident or 0] < spent[trainer] / 2


@pytest.mark.parametrize(("argv", "owner"), [(["-c"], Owner.USER), (["train.py"], Owner.LIBRARY)])
def test_what_stands_on_the_command_line_is_the_users(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], owner: Owner
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert Frames().owner_of_line(Line("<string>", 1, "<module>")) is owner


_DYING_FRAMES = """
    import sys, threading, time

    class Local:
        def __del__(self):
            time.sleep(0.002)  # gives the interpreter's lock up, as freeing a tensor does

    def call(depth):
        one, two, three = Local(), Local(), Local()
        if depth:
            call(depth - 1)

    def work():
        while True:
            call(3)
            sorted(range(50), key=lambda number: -number)

    threading.Thread(target=work, daemon=True).start()
    exec(sys.argv[1])
    print("alive", flush=True)
    import os
    os._exit(0)
"""
_SAMPLER = """
from hotloop.probe.instruments.sampler import Sampler
sampler = Sampler()
sampler.start()
while len(sampler.value()["samples"]) < 100:
    time.sleep(0.01)
sampler.end()
"""


@pytest.mark.slow
def test_frames_that_are_being_cleared_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(_DYING_FRAMES))
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py"), _SAMPLER],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
