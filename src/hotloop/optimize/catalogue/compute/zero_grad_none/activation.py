"""The activation of zero_grad_none."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.activation.knob import Knob


class GradientsLetGo(Knob):
    """Lets `zero_grad(set_to_none=False)` set gradients to None.

    Args:
        at_once: from the start; else when it is switched.
    """

    settle_steps = 1

    def __init__(self, *, at_once: bool) -> None:
        self._is_on = at_once
        self._num_calls = 0
        self._num_parameters = 0
        self._left = ""
        self._expected: dict[int, Any] = {}
        """Parameters that had a gradient when it was let go."""

    def on_torch(self) -> None:
        """Take the calls, and look before each step."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        for cls in (torch.optim.Optimizer, torch.nn.Module):
            self._take(cls)
        register_optimizer_step_pre_hook(self._refill)

    def _take(self, cls: Any) -> None:
        original = cls.zero_grad

        @functools.wraps(original)
        def zero_grad(owner: Any, set_to_none: bool = True) -> None:
            if self._is_on and not self._left and not set_to_none and self._may(owner):
                set_to_none = True
            original(owner, set_to_none)

        cls.zero_grad = zero_grad

    def _may(self, owner: Any) -> bool:
        """Whether the gradients may go; remembers which parameters had one."""
        groups = getattr(owner, "param_groups", None)
        parameters = (
            owner.parameters() if groups is None else (p for group in groups for p in group["params"])
        )
        having = [parameter for parameter in parameters if parameter.grad is not None]
        if any(parameter.grad._is_view() for parameter in having):
            self._left = "gradients that are views of one buffer were left alone"
            return False
        self._expected |= {id(parameter): parameter for parameter in having}
        self._num_calls += 1
        self._num_parameters = max(self._num_parameters, len(having))
        return True

    def _refill(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Give its zeros to a parameter that got no gradient meanwhile: momentum and decay would move it."""
        import torch

        if not self._expected:
            return
        own = [p for group in optimizer.param_groups for p in group["params"]]
        without = [p for p in own if self._expected.pop(id(p), None) is not None and p.grad is None]
        for parameter in without:
            parameter.grad = torch.zeros_like(parameter)
        if without:
            self._left = f"{len(without)} parameters have no gradient at some steps, and zeros move them"

    def switch(self, on: bool) -> None:
        """Let them go from now on, or leave the calls as they are."""
        self._is_on = on
        self._expected.clear()

    def effect(self) -> tuple[bool, str]:
        """Return whether gradients were let go."""
        if self._left or not self._num_calls:
            return False, self._left or "zero_grad was never called with set_to_none=False"
        return True, f"{self._num_calls} calls let the gradients of {self._num_parameters} parameters go"
