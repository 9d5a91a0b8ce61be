"""The activation of fused_optimizer."""

from __future__ import annotations

import gc
import inspect
from typing import Any

from hotloop.probe.activation.activation import Activation


class OptimizerKeywords(Activation):
    """Makes torch's optimizers with another implementation, and looks at the first step of each.

    Args:
        implementation: `fused` (else foreach) or `foreach`.
    """

    def __init__(self, implementation: str) -> None:
        self._implementation = implementation
        self._num_changed = 0
        self._stepped: dict[int, str] = {}
        self._left_alone: list[str] = []

    def on_torch(self) -> None:
        """Watch the steps."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self._before_step)

    def on_optimizer(self, cls: type, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords with the implementation that this class has."""
        reason = reason_against(cls, keywords)
        if reason:
            self._left_alone.append(reason)
            return keywords
        parameters = inspect.signature(cls).parameters
        # fused and foreach exclude each other, and the program's own choice is what is being changed.
        for name in ("fused", "foreach"):
            keywords.pop(name, None)
        for name in ("fused", "foreach") if self._implementation == "fused" else ("foreach",):
            if name in parameters:
                self._num_changed += 1
                return {**keywords, name: True}
        return keywords

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if id(optimizer) in self._stepped:
            return
        group = optimizer.param_groups[0]
        ways = [name for name in ("fused", "foreach") if group.get(name)]
        self._stepped[id(optimizer)] = f"{type(optimizer).__name__} steps {ways[0] if ways else 'plain'}"

    def effect(self) -> tuple[bool, str]:
        """Return whether an optimizer was seen to step with the implementation."""
        seen = sorted(set(self._stepped.values()))
        on = self._num_changed > 0 and any(not said.endswith("plain") for said in seen)
        said = "; ".join([*seen, *(f"left alone: {reason}" for reason in self._left_alone)])
        return on, said or "no optimizer stepped"


def reason_against(cls: type, keywords: dict[str, Any]) -> str:
    """Return why an optimizer of this class keeps its implementation; empty: it may be changed."""
    if not cls.__module__.startswith("torch.optim"):
        return f"{cls.__name__} is not torch's own"
    if not {"fused", "foreach"} & set(inspect.signature(cls).parameters):
        return f"{cls.__name__} has one implementation"
    if keywords.get("differentiable"):
        return f"{cls.__name__} is differentiable"
    if _sparse_gradients():
        return "the program has sparse embedding gradients, which fused kernels refuse"
    return ""


def _sparse_gradients() -> bool:
    """Whether an embedding with sparse gradients exists; its parameters do not tell, so the modules are
    looked up.

    Types are compared, because asking objects for their class can run the program's code.
    """
    import torch

    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return any(thing.sparse for thing in gc.get_objects() if issubclass(type(thing), kinds))
