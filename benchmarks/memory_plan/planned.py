"""What the plan said of one program."""

from __future__ import annotations

import msgspec


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan said of a program as it is.

    Attributes:
        wall_s: of the whole command.
        allocated: peak in bytes, the workspace included; None: no plan.
        reserved: peak in bytes.
        tensors: bytes of the tensors at the peak.
        parameters: bytes of those that are parameters or buffers.
        missing: configurations that were left out.
        said: why there is no plan, or what was assumed.
        largest: batch that fits on the device.
    """

    wall_s: float
    allocated: int | None = None
    reserved: int | None = None
    tensors: int | None = None
    parameters: int = 0
    missing: int = 0
    said: str = ""
    largest: int | None = None
