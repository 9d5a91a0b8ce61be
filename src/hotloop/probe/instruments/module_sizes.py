"""What each module holds all the time: parameters, their gradients, and what the optimizer keeps of them."""

from __future__ import annotations

import gc
from typing import Any

MAX_MODULES = 2000


class ModuleSizes:
    """The modules of the models that are called, by number."""

    def __init__(self) -> None:
        self._modules: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        """So that no number is given twice."""
        self._owners: dict[int, int] = {}
        """Of parameters, by identity: a shared one counts once."""

    def add_model(self, model: Any) -> None:
        """Take in all modules of a model that is called as a whole."""
        if id(model) in self._numbers:
            return
        for path, module in model.named_modules():
            if id(module) not in self._numbers and len(self._modules) < MAX_MODULES:
                self._add(path or type(model).__name__, module)

    def number(self, module: Any) -> int:
        """Return a module's number; -1: it belongs to no model that was taken in."""
        return self._numbers.get(id(module), -1)

    def value(self) -> list[dict[str, Any]]:
        """Return path, class and bytes of each module, what is inside it left out; lets go of them."""
        for optimizer in optimizers():
            for parameter, state in optimizer.state.items():
                owner = self._owners.get(id(parameter))
                if owner is not None and isinstance(state, dict):
                    self._modules[owner]["optimizer"] += sum(map(_num_bytes, state.values()))
        self._kept.clear()
        return self._modules

    def _add(self, path: str, module: Any) -> None:
        number = self._numbers[id(module)] = len(self._modules)
        self._kept.append(module)
        row: dict[str, Any] = {"path": path, "cls": type(module).__name__}
        row |= {"parameters": 0, "gradients": 0, "buffers": 0, "optimizer": 0}
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in self._owners:
                self._owners[id(parameter)] = number
                row["parameters"] += _num_bytes(parameter)
                row["gradients"] += _num_bytes(parameter) if parameter.requires_grad else 0
        row["buffers"] = sum(map(_num_bytes, module.buffers(recurse=False)))
        self._modules.append(row)


def optimizers() -> list[Any]:
    """Return the program's optimizers.

    A hook on their steps could not be taken away at a step's end: torch is going through its hooks just then.
    """
    from torch.optim import Optimizer

    return [each for each in gc.get_objects() if issubclass(type(each), Optimizer)]


def _num_bytes(value: Any) -> int:
    """Return what a tensor takes; what is none takes nothing."""
    return int(value.numel() * value.element_size()) if hasattr(value, "element_size") else 0
