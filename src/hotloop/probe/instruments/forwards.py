"""Forwards: calls of the program's models whose graph no backward goes through."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from threading import get_ident
from time import monotonic_ns
from typing import Any, NamedTuple

from hotloop.probe.instruments.frames import Frames, Line
from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.probe import Probe

MAX_ARGUMENTS = 32
"""Of a call, or in one of its arguments: a batch has fewer."""


class _Given(NamedTuple):
    """One argument: a tensor, or an object that holds some.

    Attributes:
        owner: the object, or what a tensor is a view of.
        place: which part of the owner's memory, as of which change; empty for what is no tensor.
    """

    owner: weakref.ref[Any]
    place: tuple[Any, ...]


@dataclass
class _Call:
    """One call of a model."""

    model: int
    at: Line
    batch: tuple[_Given, ...]
    """What it was given; empty: no tensor was among that, or it has no arguments."""
    step: int
    begin_ns: int
    spent_ns: int = 0
    used: bool = True
    again: bool = False
    """The same model had the same tensors before."""
    handles: list[Any] = field(default_factory=list)


class Forwards(Instrument):
    """Watches the models that the program calls as a whole, by torch's global module hooks.

    Args:
        probe: the probe.
    """

    min_steps = 4
    max_steps = 40
    seconds = 0.5

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._frames = Frames()
        self._calls: list[_Call] = []
        self._open: _Call | None = None
        self._depth = 0
        self._steps = 0
        self._thread = get_ident()
        self._handles: list[Any] = []

    def start(self) -> None:
        """Hook the calls.

        Raises:
            Unavailable: something is compiled, which such hooks would have compiled anew.
        """
        if self.probe.compiles():
            raise Unavailable("hooks on modules would have compiled code compiled anew")
        from torch.nn.modules import module

        self._thread = get_ident()
        self._handles = [
            module.register_module_forward_pre_hook(self._begins),
            module.register_module_forward_hook(self._ends, always_call=True),
        ]

    def step(self) -> None:
        """Count."""
        self._steps += 1

    def stop(self) -> Any:
        """Return the calls of whole steps, put together by line."""
        self._unhook()
        rows: dict[Line, dict[str, Any]] = {}
        for call in self._calls:
            if call.step < self._steps - 1:  # the backward of the last ones may be yet to come
                row = rows.setdefault(
                    call.at,
                    {**call.at._asdict(), "count": 0, "unused": 0, "repeated": 0, "unused_s": 0.0},
                )
                row["count"] += 1
                if not call.used:
                    row["unused"] += 1
                    row["unused_s"] += call.spent_ns * 1e-9
                    row["repeated"] += call.again
        self._calls = []
        return {"steps": max(1, self._steps - 1), "rows": list(rows.values())}

    def after_fork(self) -> None:
        """Leave a forked child's modules alone."""
        self._unhook()
        self._calls = []

    def _unhook(self) -> None:
        for handle in [*self._handles, *(handle for call in self._calls for handle in call.handles)]:
            handle.remove()
        self._handles = []

    def _begins(self, model: Any, args: Any) -> None:
        if get_ident() != self._thread:
            return
        self._depth += 1
        if self._depth == 1 and not self.probe.in_backward:
            with self.probe.survive("forwards:begin"):
                self._open = self._begun(model, args)

    def _ends(self, model: Any, args: Any, output: Any) -> None:  # noqa: ARG002 - torch's signature
        if get_ident() != self._thread:
            return
        self._depth = max(0, self._depth - 1)
        call = self._open
        if self._depth == 0 and call is not None:
            self._open = None
            with self.probe.survive("forwards:end"):
                call.spent_ns = monotonic_ns() - call.begin_ns
                self._watch(call, model, output)
                self._calls.append(call)

    def _begun(self, model: Any, args: Any) -> _Call | None:
        caller = self._frames.caller(sys._getframe(2))
        if caller is None:
            return None
        import torch

        named = sys._getframe(2).f_locals.get("kwargs")  # torch's hooks of all modules are not given it
        batch = tuple(_given([*args, *(named or {}).values()], torch.Tensor, 3))
        call = _Call(id(model), caller.at, batch, self._steps, monotonic_ns())
        call.again = any(one.place for one in batch) and any(
            _is_same(call, other) for other in reversed(self._calls)
        )
        return call

    def _watch(self, call: _Call, model: Any, output: Any) -> None:
        """Learn whether a backward comes through an output.

        The node of a view is made anew where its base is written to; what is behind the base stays.
        """
        tensors = [each for each in _outputs(output, 3) if each.grad_fn is not None]
        tensors += [each._base for each in tensors if each._is_view()]
        if not model.training or not tensors or any(each.grad_fn is None for each in tensors):
            return
        call.used = False

        def passes(_: Any) -> None:
            call.used = True

        call.handles = [each.grad_fn.register_prehook(passes) for each in tensors]


def _is_same(one: _Call, other: _Call) -> bool:
    """Whether an earlier call gave the same model the same tensors, all of them still there.

    A step ends with its optimizer: a call for a metric, of the batch just trained on, counts as the next step's.
    """
    if one.model != other.model or one.step - other.step > 1 or len(one.batch) != len(other.batch):
        return False
    return all(
        mine.owner() is theirs.owner() is not None and mine.place == theirs.place
        for mine, theirs in zip(one.batch, other.batch, strict=True)
    )


def _given(values: Iterable[Any], tensor: Any, depth: int) -> Iterator[_Given]:
    """Yield what makes arguments the same as others; numbers and texts have no part in it."""
    for value in islice(values, MAX_ARGUMENTS):
        if isinstance(value, tensor):
            yield _Given(weakref.ref(value if value._base is None else value._base), _place(value))
        elif isinstance(value, dict):
            yield from _given(value.values(), tensor, depth - 1) if depth else ()
        elif isinstance(value, list | tuple):
            yield from _given(value, tensor, depth - 1) if depth else ()
        elif hasattr(value, "__dict__") and hasattr(value, "__weakref__"):
            yield _Given(weakref.ref(value), ())
            yield from _given(list(vars(value).values()), tensor, depth - 1) if depth else ()


def _place(tensor: Any) -> tuple[Any, ...]:
    version = 0 if tensor.is_inference() else tensor._version
    strided = str(tensor.layout) == "torch.strided"
    return (
        version,
        tensor.dtype,
        tensor.shape,
        *((tensor.stride(), tensor.storage_offset()) if strided else ()),
    )


def _outputs(value: Any, depth: int) -> list[Any]:
    """Return the tensors of a model's output."""
    if hasattr(value, "grad_fn"):
        return [value]
    if depth and isinstance(value, dict):
        return [each for inner in value.values() for each in _outputs(inner, depth - 1)]
    if depth and isinstance(value, list | tuple):
        return [each for inner in value for each in _outputs(inner, depth - 1)]
    return []
