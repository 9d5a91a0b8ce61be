"""What can be measured within one running program: changes switched on and off, and things driven alone.

Both are activations, so that they may act at any hook point; `hotloop.probe.windows.knob_blocks` says when.
"""

from __future__ import annotations

from typing import Any

from hotloop.probe.activation.activation import Activation


class Knob(Activation):
    """A change that can be switched on and off at the step boundaries of a running program.

    Attributes:
        settle_steps: steps after a switch that are not timed, beside the usual ones: queues fill, code is compiled.
        lasting: whether a switch is dear, or leaves something behind (an allocator's heap, compiled code, workers): it
            is then switched for predictions alone, and tried in a process of its own.
    """

    settle_steps: int = 0
    lasting: bool = False

    @property
    def from_start(self) -> bool:
        """Whether it did not act, and would if it were on from the start of the process."""
        return False

    def switch(self, on: bool) -> None:
        """Switch the change on or off; called at a step boundary."""
        raise NotImplementedError

    def watch(self, steps: int) -> None:
        """Called at each boundary until measuring begins: a look at what the program does by itself."""


class Bench(Activation):
    """Something that is driven alone, at a step boundary, once the program has warmed up.

    Attributes:
        last: whether it is driven when all knobs had their turn: memory is not as it was after it.
    """

    last: bool = False

    def run(self) -> dict[str, Any]:
        """Return what was measured, for JSON."""
        raise NotImplementedError

    def watch(self, steps: int) -> None:
        """Called at each boundary until measuring begins."""
