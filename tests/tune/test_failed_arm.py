"""An arm that failed says what of its isolation is the likely cause, and which option avoids it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import pytest

from hotloop.launch.isolation.values import Isolation
from hotloop.model.observation import Anchor
from hotloop.tune.trials.arm import Arm, ArmFailed

if TYPE_CHECKING:
    from hotloop.launch.process import Run
    from hotloop.probe.control.control_page import ControlPage


@dataclass
class _Failed:
    """A run that ended with code 1 before its first step."""

    scratch: Path
    log: str
    isolation: Isolation = field(default_factory=Isolation)

    def exit_code(self) -> int:
        return 1

    def log_end(self, num_lines: int = 12, *, report: bool = False) -> str:
        return self.log

    def thaw(self) -> None: ...

    def wait(self, until: Callable[[], bool], **_: object) -> bool:
        return False


class _Page:
    numbers: ClassVar[list[int]] = [0] * 64


@pytest.mark.parametrize(
    ("log", "isolation", "said"),
    [
        (os.strerror(errno.EROFS), Isolation(covered=True), "--writable FOLDER"),
        (os.strerror(errno.ECONNREFUSED), Isolation(network=True), "--network"),
        ("ValueError: no", Isolation(covered=True, network=True), None),
    ],
)
def test_the_option_is_named(log: str, isolation: Isolation, said: str | None, tmp_path: Path) -> None:
    run = _Failed(tmp_path, f"OSError: {log}", isolation)
    arm = Arm(
        cast("Run", run),
        cast("ControlPage", _Page()),
        Anchor("optimizer", 0, 1),
        num_ranks=1,
        memory_limit_bytes=None,
    )
    with pytest.raises(ArmFailed) as caught:
        arm.advance(10, discard=1, timeout_s=1.0)
    message = caught.value.failure.message
    assert "exit code 1" in message
    assert said in message if said else "--" not in message
