"""Why a virtual run gave nothing."""

from __future__ import annotations

from pathlib import Path

from hotloop.model.errors import ExitCode, HotloopError


def nothing_planned(folder: Path, code: int | None, last: str, limit_s: float) -> HotloopError:
    """Return why nothing was planned."""
    for path in folder.glob("virtual-failed-*"):
        return HotloopError(
            f"the memory of a device that is not here cannot be planned: {path.read_text()}",
            "plan it where the program's environment has torch for CUDA, or a C++ compiler",
            ExitCode.MACHINE,
        )
    if code is None:
        return HotloopError(
            f"the program took no training step on the virtual GPU within {limit_s:.0f} s",
            "give it more time: --seconds",
            ExitCode.PROGRAM_FAILED,
        )
    said = f": {last}" if last else ""
    return failed_early(0, f" with exit code {code}{said}")


def failed_early(num_steps: int, how: str) -> HotloopError:
    """Return the error of a program that failed before its third step.

    Args:
        num_steps: that it took.
        how: it ended.
    """
    return HotloopError(
        f"the program ended on the virtual GPU after {num_steps} training steps{how}",
        "run it as you do, to see that it trains; on the virtual GPU values on the device are not known",
        ExitCode.PROGRAM_FAILED,
    )
