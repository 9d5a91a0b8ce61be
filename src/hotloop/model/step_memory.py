"""What tensors take over a step, by phase and by module."""

from __future__ import annotations

import msgspec

from hotloop.model.memory_account import PeakAccount


class PhaseMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one phase of the step."""

    peak_bytes: int
    """The most that tensors took while it lasted."""
    change_bytes: float
    """What they took at its end beyond its beginning, a step."""


class ModuleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """One module of the model, what is inside it left out."""

    path: str
    """As in the model's `state_dict`; of the model itself its class."""
    cls: str
    parameter_bytes: int
    gradient_bytes: int
    """Where all that learn have one."""
    buffer_bytes: int
    optimizer_bytes: int
    """What the optimizer keeps of its parameters."""
    activation_bytes: int | None
    """What its forwards of one step leave to the backward: what outlives the model's own call; None: not called."""

    @property
    def total_bytes(self) -> int:
        """All of it together."""
        held = self.parameter_bytes + self.gradient_bytes + self.buffer_bytes + self.optimizer_bytes
        return held + (self.activation_bytes or 0)


class StepMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the leading process's tensors over a few steps, by torch's account of its allocators."""

    device: str
    num_steps: int
    window_s: float
    absolute: bool
    """Whether bytes are all that tensors take; otherwise what they take beyond the lowest moment of the window: what
    was allocated before it is not told apart on the host."""
    peak_bytes: int
    times_s: tuple[float, ...]
    """From the beginning of the window; extremes are kept where it was thinned out."""
    bytes: tuple[int, ...]
    steps_s: tuple[float, ...]
    """When its steps ended."""
    phases: dict[str, PhaseMemory]
    modules: tuple[ModuleMemory, ...] | None
    """The largest first; None: the program compiles, and hooks on its modules would have it compiled anew."""
    account: PeakAccount | None = None
    """What holds the peak; None: not known, or kept with the observation's memory."""
