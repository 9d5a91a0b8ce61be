"""Who names a shell or a launcher means the Python that it started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hotloop.model.errors import HotloopError
from hotloop.observe.attach.trainer import trainer

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
def test_of_several_one_has_to_be_named(shell: int) -> None:
    with pytest.raises(HotloopError, match=r"is no Python, and started 2 that are:\n\d+: "):
        trainer(shell)


@pytest.mark.parametrize("shell", [0], indirect=True)
def test_a_shell_without_python_is_said(shell: int) -> None:
    with pytest.raises(HotloopError, match="is no Python, and started none"):
        trainer(shell)


def test_a_process_that_is_not_there_is_said() -> None:
    with pytest.raises(HotloopError, match="there is no process 99999999"):
        trainer(99999999)
