"""The activations of activation_memory_budget: torch's own setting, for the program's compilation or for ours."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.compilation.compiled_forward import CompiledForward, num_graphs
from hotloop.probe.activation.activation import Activation


class MemoryBudget(Activation):
    """Sets the budget for what the program compiles.

    Args:
        budget: share of the activations that compiled code may keep.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._before: int | None = None

    def on_torch(self) -> None:
        """Set it before anything is compiled."""
        set_budget(self._budget)

    def on_root(self, module: Any) -> None:
        """Set it in the thread that trains: torch keeps settings for each thread."""
        self._before = num_graphs() if self._before is None else self._before
        set_budget(self._budget)

    def effect(self) -> tuple[bool, str]:
        """Return whether something was compiled with the budget."""
        num = num_graphs() - (self._before or 0)
        if self._before is None or not num:
            return False, "nothing was compiled in training"
        return True, f"{num} graphs compiled with activation_memory_budget={self._budget}"


class CompiledWithinBudget(CompiledForward):
    """Compiles the call of each root with a budget.

    Args:
        budget: share of the activations that compiled code may keep.
    """

    wraps_at_once = True
    """No step is to reach the old peak."""

    def __init__(self, budget: float) -> None:
        super().__init__("default", None)
        self._budget = budget

    def on_root(self, module: Any) -> None:
        """Set it in the thread that trains: torch keeps settings for each thread."""
        set_budget(self._budget)

    def effect(self) -> tuple[bool, str]:
        """Return whether graphs were compiled with the budget, and called."""
        is_on, said = super().effect()
        return is_on, f"{said}, activation_memory_budget={self._budget}" if is_on else said


def set_budget(budget: float) -> None:
    """Set what the partitioner of forward and backward goes by, in this thread."""
    import torch._functorch.config as settings

    settings.activation_memory_budget = budget
