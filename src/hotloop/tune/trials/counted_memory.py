"""The peak of an arm where memory counts: the bytes of its tensors, counted over a few steps before it is timed."""

from __future__ import annotations

from typing import Any

from hotloop.observe.decode.instrument_files import has_seen, read_deep
from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_DONE,
    DEEP_EVERY,
    DEEP_HOLDS,
    DEEP_KIND,
    DEEP_MS,
    DEEP_PERMILLE,
    DEEP_SLOT,
)
from hotloop.probe.control.step_boundary import KINDS
from hotloop.tune.trials.arm import Arm

NAME = "tensor_peak"
ORDER: dict[str, Any] = {
    "name": NAME,
    "module": "hotloop.probe.instruments.tensor_peak",
    "cls": "TensorPeak",
}
"""What the probe is told of it."""
STEPS = 5
"""One to come to the boundary, three to look at, one to spare."""
COUNTED = "counted tensors"
"""Of torch's allocator on the host."""
DEVICE = "device allocator"
"""The most that tensors took of a device, as torch counts it."""
PAGES = "proportional set of pages"
"""Of all processes of an arm when they stood still; where tensors could not be counted."""
RESIDENT = "resident set"


def count_memory(arm: Arm, number: int, timeout_s: float) -> None:
    """Let an arm take a few steps under the counter.

    Args:
        arm: warm.
        number: of the instrument, as the probe knows it.
        timeout_s: for the steps and for what is put together after them.

    Raises:
        ArmFailed: it ended, or hung.
    """
    numbers = arm.page.numbers
    numbers[DEEP_KIND], numbers[DEEP_SLOT] = KINDS[arm.anchor.kind], arm.anchor.slot
    numbers[DEEP_EVERY], numbers[DEEP_HOLDS] = arm.anchor.every, 0
    numbers[DEEP_PERMILLE], numbers[DEEP_MS] = 1000, 0
    numbers[DEEP] = number
    arm.advance(STEPS, discard=0, timeout_s=timeout_s, timed=False)
    if any(row[DEEP_DONE] != number for row in arm.page.rows()):
        arm.advance(1, discard=0, timeout_s=timeout_s, timed=False)
    numbers[DEEP] = 0


def counted_peak(arm: Arm, *, on_device: bool) -> tuple[int | None, str]:
    """Return the peak of an arm in bytes, and how it was measured; of several ranks the largest one's."""
    if on_device:
        return arm.peak_bytes(), DEVICE
    files = [file for file in read_deep(arm.folder, NAME) if has_seen(file)]
    if files:
        return max(int(file.value["peak_bytes"]) for file in files), COUNTED
    tree = arm.tree_peak()
    return (tree.peak_bytes, PAGES) if tree is not None else (arm.peak_bytes(), RESIDENT)
