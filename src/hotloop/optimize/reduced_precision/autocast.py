"""The activation behind the autocast optimizations: autocast around the root's forward, outputs back in
fp32."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.optimize.reduced_precision.full_sigmoids import FullSigmoids
from hotloop.probe.activation.activation import Activation

GRAPH_NODES = 2_000
"""Nodes of the autograd graph that are searched, once, for the casts of autocast; they stand next to the
layers."""


class Autocast(Activation):
    """Runs training forwards under autocast to one dtype.

    Args:
        dtype: `bfloat16` or `float16`.
    """

    def __init__(self, dtype: str) -> None:
        self._dtype_name = dtype
        self._left_alone = ""
        self._wide: dict[int, bool] = {}
        self._sigmoids = FullSigmoids()
        self.inside = ""
        """What autocast said of itself inside the first forward; empty: no forward yet."""
        self.evidence = ""
        """What showed in the first output; empty: nothing did."""

    def forward_context(self, module: Any) -> AbstractContextManager[Any] | None:
        """Return the context, or None for a model in double precision, which is meant."""
        import torch

        if self.is_wide(module):
            self._left_alone = f"a {type(module).__name__} in double precision was left alone"
            return None
        first = next(module.parameters(), None)
        return _Seen(
            self,
            first.device.type if first is not None else "cpu",
            getattr(torch, self._dtype_name),
            self._sigmoids.context(module),
        )

    def is_wide(self, module: Any) -> bool:
        """Whether a model computes in double precision."""
        import torch

        if id(module) not in self._wide:
            dtypes = {parameter.dtype for parameter in module.parameters()}
            self._wide[id(module)] = bool(dtypes & {torch.float64, torch.complex128})
        return self._wide[id(module)]

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Return the output with reduced tensors in fp32: losses outside may refuse half."""
        if not self.inside or self._left_alone:
            return output
        import torch

        self._sigmoids.look(module, output)
        dtype = getattr(torch, self._dtype_name)
        if not self.evidence:
            self.evidence = self._look(output, dtype)
        return map_tensors(output, lambda tensor: tensor.float() if tensor.dtype is dtype else tensor)

    def _look(self, output: Any, dtype: Any) -> str:
        tensors = tensors_in(output)
        if any(tensor.dtype is dtype for tensor in tensors):
            return f"the forward returned {dtype}"
        if any(tensor.grad_fn is not None and _casts(tensor.grad_fn) for tensor in tensors):
            return "the output's graph holds the casts of autocast"
        return ""

    def effect(self) -> tuple[bool, str]:
        """Return whether autocast was on inside the forward and reduced something."""
        if self.inside and self.evidence:
            kept = "; sigmoids of outputs in fp32" if self._sigmoids.acted else ""
            return True, f"{self.inside} inside the forward; {self.evidence}{kept}"
        if self.inside:
            return False, f"{self.inside} inside the forward, but nothing in the output was computed in it"
        return False, self._left_alone or "no training forward was seen"


class _Seen:
    """Autocast that looks once at what it did, with another context inside of it."""

    def __init__(
        self, activation: Autocast, device: str, dtype: Any, inner: AbstractContextManager[None]
    ) -> None:
        import torch

        self._activation = activation
        self._device = device
        self._contexts = (torch.autocast(device, dtype=dtype), inner)

    def __enter__(self) -> None:
        import torch

        for context in self._contexts:
            context.__enter__()
        if not self._activation.inside and torch.is_autocast_enabled(self._device):
            self._activation.inside = f"{self._device} autocast to {torch.get_autocast_dtype(self._device)}"

    def __exit__(self, *error: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*error)


def _casts(node: Any) -> bool:
    """Whether a cast of autocast stands in the graph that ends in this node."""
    todo: list[Any] = [node]
    seen: set[Any] = set()
    while todo and len(seen) < GRAPH_NODES:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name().startswith("ToCopyBackward"):
            return True
        todo.extend(parent for parent, _ in node.next_functions if parent is not None)
    return False
