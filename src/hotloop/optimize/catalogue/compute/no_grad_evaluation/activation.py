"""The activation of no_grad_evaluation: lines whose forwards are seen to need no graph go without."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from hotloop.optimize.catalogue.compute.no_grad_evaluation.side_ways import kept_by_hooks, kept_in_attributes
from hotloop.optimize.program.containers import tensors_in
from hotloop.probe.activation.activation import Activation
from hotloop.probe.record.call_site import user_line

Line = tuple[str | None, int | None]
DIFFERENTIATED = "a backward comes through"


class GraphFree(Activation):
    """Watches forwards in evaluation mode by the line that calls them."""

    def __init__(self) -> None:
        self._watched: set[Line] = set()
        """Lines of the evaluation under way."""
        self._free: set[Line] = set()
        self._left: dict[Line, str] = {}
        """Lines that keep their graph, and why."""
        self._line: Line = (None, None)
        self._num_calls = 0

    def forward_context(self, module: Any) -> AbstractContextManager[Any]:
        """Return what decides at each forward of this root."""
        return _Decides(self, module)

    def on_forward_inputs(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, Any]:
        """Leave a line whose backward may not come by the outputs, which alone are watched."""
        if module.training:
            return args, kwargs
        self._line = user_line(2)
        if any(tensor.requires_grad for tensor in tensors_in((args, kwargs))):
            self._leave(self._line, "gradients go on to the inputs at")
        elif kept_by_hooks(module):
            self._leave(self._line, "hooks are given what is computed at")
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """See whether a backward comes through what an evaluation gives."""
        if module.training or self._line in self._free:
            return output
        line = self._line
        if kept_in_attributes(module):
            self._leave(line, "the model keeps what is computed at")
        for tensor in tensors_in(output):
            if tensor.requires_grad:
                self._watched.add(line)
                tensor.register_hook(lambda _, line=line: self._leave(line, DIFFERENTIATED))
        return output

    def begins(self, module: Any) -> bool:
        """Return whether the forward that begins goes without a graph."""
        if module.training:
            self._free |= self._watched - self._left.keys()
            self._watched.clear()
            return False
        is_free = self._line in self._free
        self._num_calls += is_free
        return is_free

    def effect(self) -> tuple[bool, str]:
        """Return whether forwards went without a graph, and at which lines."""
        said = "".join(f"; left: {reason} {self._lines(reason)}" for reason in sorted({*self._left.values()}))
        if not self._num_calls:
            return False, "no evaluation after the first kept a graph that nothing used" + said
        lines = ", ".join(_shown(line) for line in sorted(self._free, key=str))
        return True, f"{self._num_calls} forwards in evaluation mode went without a graph, at {lines}{said}"

    def _leave(self, line: Line, reason: str) -> None:
        self._left.setdefault(line, reason)
        self._free.discard(line)

    def _lines(self, reason: str) -> str:
        return ", ".join(_shown(line) for line in sorted(self._left, key=str) if self._left[line] == reason)


def _shown(line: Line) -> str:
    return f"{os.path.basename(line[0] or '?')}:{line[1]}"


class _Decides:
    """Entered around every forward of a root that keeps gradients.

    Args:
        owner: knows the lines.
        module: the root.
    """

    def __init__(self, owner: GraphFree, module: Any) -> None:
        import weakref

        from torch import no_grad

        self._owner = owner
        self._module = weakref.ref(module)
        self._no_grad = no_grad
        self._entered: Any = None

    def __enter__(self) -> None:
        module = self._module()
        if module is not None and self._owner.begins(module):
            self._entered = self._no_grad()
            self._entered.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.__exit__(kind, error, trace)
