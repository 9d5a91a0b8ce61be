"""Who names a shell or a launcher means the Python that it started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

import hotloop.observe.attach.trainer as of_trainer
from hotloop.model.errors import HotloopError
from hotloop.observe.attach.trainer import trainer

_WAITS = "print(1, flush=True); input()"
_SLEEPS = f"{sys.executable} -c 'print(1, flush=True); import time; time.sleep(60)'"


@pytest.fixture
def shell(request: pytest.FixtureRequest) -> Iterator[int]:
    """A shell with so many Pythons below it."""
    script = " & ".join([_SLEEPS] * request.param + ["sleep 60 & echo 1; wait"])
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        for _ in range(request.param + 1):
            process.stdout.readline()
        yield process.pid
        os.killpg(process.pid, 9)


def test_a_python_is_itself() -> None:
    assert trainer(os.getpid()) == os.getpid()


@pytest.mark.parametrize("shell", [1], indirect=True)
def test_the_only_python_below_a_shell_is_meant(shell: int) -> None:
    assert trainer(trainer(shell)) == trainer(shell) != shell


@pytest.mark.parametrize("shell", [2], indirect=True)
def test_of_several_that_do_not_train_one_has_to_be_named(shell: int) -> None:
    with pytest.raises(
        HotloopError, match=r"none of the 2 Python processes below .* has loaded torch:\n\d+: "
    ):
        trainer(shell)


@pytest.mark.parametrize("shell", [3], indirect=True)
def test_of_several_that_train_the_newest_is_taken(shell: int, monkeypatch: pytest.MonkeyPatch) -> None:
    below = sorted(psutil.Process(shell).children(), key=lambda one: (one.create_time(), one.pid))
    pythons = [one.pid for one in below if one.name().startswith("python")]
    monkeypatch.setattr(of_trainer, "_has_torch", lambda process: process.pid in pythons[:2])
    assert trainer(shell) == pythons[1]


def test_a_process_that_has_loaded_torch_trains() -> None:
    torch = pytest.importorskip("torch")
    assert torch.__version__
    assert of_trainer._has_torch(psutil.Process())


def test_hotloop_itself_is_never_looked_at() -> None:
    """The shell that runs `hotloop observe --pid $$` has hotloop below it, and `hotloop run` has the program."""
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_WAITS!r}], stdin=0)"
    code = f"import sys; sys.argv = ['hotloop']; {inner}"
    for words in (["-c", code, "-m", "hotloop"],):
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert trainer(process.pid) not in {process.pid, os.getpid()}
            os.killpg(process.pid, 9)


@pytest.mark.parametrize("shell", [0], indirect=True)
def test_a_shell_without_python_is_said(shell: int) -> None:
    with pytest.raises(HotloopError, match="does not train, and no Python runs below it"):
        trainer(shell)


def test_a_process_that_is_not_there_is_said() -> None:
    with pytest.raises(HotloopError, match="there is no process 99999999"):
        trainer(99999999)
