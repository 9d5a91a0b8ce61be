"""What more than three steps of a planned program showed, in words."""

from __future__ import annotations

from pathlib import Path

from hotloop.model.memory_plan import LaterPeak, MemoryPlan
from hotloop.model.quantities import byte_size

FIRST_STEPS = 3
"""A peak in one of them is where everybody looks."""


def said_later(plan: MemoryPlan) -> list[tuple[str, str]]:
    """Return rows: when the peak was reached, what grows and until when it fits, and what differs between batches."""
    later = plan.later
    if later is None:
        return []
    rows = [("reached", _reached(later))] if later.num_steps else []
    if later.phase == "between":
        rows.append(("evaluation", "other configurations have that peak, too, where it is above theirs"))
    if later.grows_bytes is not None:
        rows.append(("grows", _grows(plan, later, later.grows_bytes)))
    if len(later.sizes) == 2 and later.sizes[0] < later.sizes[1]:
        rows.append(
            (
                "batches",
                f"the model's input had {later.sizes[0]:,} to {later.sizes[1]:,} elements in {later.num_steps:,} "
                "steps: the peak is that of the largest seen, a larger one needs more; other configurations have the "
                "peaks of their own steps",
            )
        )
    if later.failure is not None:
        rows.append(("ended", f"after {later.num_steps:,} steps the program failed there{later.failure}"))
    return rows


def _reached(later: LaterPeak) -> str:
    where = f" ({short_place(later.line)})" if later.line else ""
    phase = {"between": "outside the training steps", "start": "before the first step"}.get(later.phase)
    step = f"in the {later.phase} of step {later.step:,}" if phase is None else phase
    if later.phase == "between":
        step += f", after step {later.step - 1:,}"
    seen = "a whole epoch was seen" if later.whole_epoch else "no whole epoch was seen"
    return f"{step}{where}; {later.num_steps:,} steps of the program as it is were looked at: {seen}"


def _grows(plan: MemoryPlan, later: LaterPeak, per_step: float) -> str:
    line = f", most of it made in {short_place(later.growing_line)}" if later.growing_line else ""
    rooms = {device.name: device.total_bytes - device.outside_bytes for device in plan.devices}
    until = [
        f"{name} about {max(0, int((room - later.allocated_bytes) // per_step)) + later.num_steps:,}"
        for name, room in rooms.items()
    ]
    return f"by {byte_size(round(per_step))} a step{line}; full after steps: {', '.join(until)}"


def short_place(where: str) -> str:
    """Return `file:line` without its folders; what is no place stays as it is."""
    path, colon, line = where.rpartition(":")
    return f"{Path(path).name}:{line}" if colon and line.isdigit() else where
