"""Which configurations of a program are planned."""

from __future__ import annotations

import msgspec

AS_IT_IS = "as it is"
TWICE = "batch x2"
SHORT = {"bfloat16": "bf16", "float16": "fp16"}
"""Names of the types that autocast takes, as users say them."""


class PlannedConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, as the virtual GPU is ordered to have it.

    Attributes:
        name: for the table.
        precision: bfloat16 or float16: autocast around the forward; None: as the program has it.
        batch: factor on the batch size.
        accumulation: micro-batches of a step; each has the batch divided by it.
        checkpointing: recompute the model's repeated blocks in the backward.
        attention: flash, efficient or math; None: as torch chooses on the device.
    """

    name: str
    precision: str | None = None
    batch: float = 1
    accumulation: int = 1
    checkpointing: bool = False
    attention: str | None = None


def configurations(half: str) -> list[PlannedConfiguration]:
    """Return what is planned, the program as it is first.

    Args:
        half: the type that autocast takes on the device: bfloat16 or float16.
    """
    short = SHORT[half]
    return [
        PlannedConfiguration(name=AS_IT_IS),
        PlannedConfiguration(name=f"{short} autocast", precision=half),
        PlannedConfiguration(name="checkpointing", checkpointing=True),
        PlannedConfiguration(name=f"{short} + checkpointing", precision=half, checkpointing=True),
        PlannedConfiguration(name="accumulation 2", accumulation=2),
        PlannedConfiguration(name="accumulation 4", accumulation=4),
        PlannedConfiguration(
            name=f"{short} + checkpointing + accumulation 4",
            precision=half,
            checkpointing=True,
            accumulation=4,
        ),
        PlannedConfiguration(name="attention by math", attention="math"),
        PlannedConfiguration(name=TWICE, batch=2),
    ]
