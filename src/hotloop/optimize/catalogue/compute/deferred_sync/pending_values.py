"""The queue of one loop: values on their way from the device, and the statements that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from numbers import Number
from typing import Any, NamedTuple, Protocol

from hotloop.optimize.catalogue.compute.deferred_sync.deferrable_statements import PLAIN

TURNS = 2
"""A statement runs at the latest when so many turns have begun since its own: the device has then had a whole step."""
_PLAIN = (Number, str, bytes, type(None))
"""What does not change under one's hands, numpy's numbers among them."""


class Way(Protocol):
    """A value on its way to the host."""

    def is_there(self) -> bool:
        """Whether it can be read without waiting."""

    def read(self) -> Any:
        """Return a tensor on the host; waits for it."""


class Entry(NamedTuple):
    """A statement that waits, and what it was given."""

    number: int
    values: list[Any]


class _Waits(NamedTuple):
    entry: Entry
    turn: int
    ways: list[tuple[int, str, Way]]


class Counts:
    """What became of the statements of a program."""

    def __init__(self) -> None:
        self.num_later = 0
        self.num_at_once = 0
        self.reasons: set[str] = set()


class Later:
    """Gives back what waits, in the order in which it came.

    Args:
        send: starts a tensor's way to the host; None: it is there already.
        counts: of the whole program.
        num_turns: that the loop will take; None: unknown.
    """

    def __init__(
        self, send: Callable[[Any], Way | None], counts: Counts, num_turns: int | None = None
    ) -> None:
        self._send = send
        self._counts = counts
        self._num_turns = num_turns
        self._turn = 0
        self._waiting: deque[_Waits] = deque()

    def put(self, number: int, kinds: str, *values: Any) -> list[Entry]:
        """Take a statement; return what has to run at once, this one included where it cannot wait."""
        entry = Entry(number, list(values))
        ways: list[tuple[int, str, Way]] = []
        for at, kind in enumerate(kinds):
            way = self._send(values[at]) if _is_value(kind, values[at]) else None
            if way is not None:
                ways.append((at, kind, way))
            elif kind != PLAIN:
                entry.values[at] = asked(kind, values[at])
        reason = self._against(kinds, values)
        if ways or self._waiting:
            self._counts.num_later += len(ways) if not reason else 0
            self._waiting.append(_Waits(entry, self._turn, ways))
            if not reason:
                return []
            self._counts.reasons.add(reason)
            return list(self.rest())
        self._counts.num_at_once += 1
        return [entry]

    def _against(self, kinds: str, values: tuple[Any, ...]) -> str:
        if self._turn == self._num_turns:
            return "the last turn"
        for kind, value in zip(kinds, values, strict=True):
            if kind == PLAIN and not is_plain(value):
                return f"a {type(value).__name__} beside the value may change"
        return ""

    def turn(self) -> Iterator[Entry]:
        """Begin a turn; yield what is there, and what has waited for a step."""
        self._turn += 1
        while self._waiting:
            first = self._waiting[0]
            if self._turn - first.turn < TURNS and not all(way.is_there() for _, _, way in first.ways):
                return
            yield self._next()

    def rest(self) -> Iterator[Entry]:
        """Yield all that waits; where an exception ends the loop, what can still be had."""
        while self._waiting:
            try:
                entry = self._next()
            except RuntimeError as error:
                if error.__context__ is not None:
                    return  # the loop ends by an exception of its own, after which the device gives nothing more
                raise
            yield entry

    def _next(self) -> Entry:
        entry, _, ways = self._waiting.popleft()
        for at, kind, way in ways:
            entry.values[at] = asked(kind, way.read())
        return entry


def _is_value(kind: str, value: Any) -> bool:
    """Whether it is asked for numbers alone; `cpu()` keeps the graph of what has one."""
    return kind != PLAIN and not (kind == "c" and getattr(value, "requires_grad", False))


def asked(kind: str, value: Any) -> Any:
    """Return what the statement asked of a value, as it is written there."""
    if kind == "f":
        return float(value)
    if kind == "n":
        return int(value)
    return value.item() if kind == "i" else value.tolist() if kind == "l" else value.cpu()


def is_plain(value: Any) -> bool:
    """Whether a value will be the same later."""
    if isinstance(value, tuple):
        return all(is_plain(each) for each in value)
    return isinstance(value, _PLAIN)


class Copied:
    """A copy to the host under way on a stream of a CUDA device.

    Args:
        tensor: on the device.
    """

    def __init__(self, tensor: Any) -> None:
        import torch

        with torch.no_grad():
            self._copy = tensor.detach().to("cpu", non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(tensor.device))

    def is_there(self) -> bool:
        """Whether the device has come by it."""
        return bool(self._event.query())

    def read(self) -> Any:
        """Return the copy, once it is whole."""
        self._event.synchronize()
        return self._copy


def sent(tensor: Any) -> Way | None:
    """Start a tensor's way to the host; None: it is no tensor on a CUDA device."""
    return Copied(tensor) if getattr(tensor, "is_cuda", False) else None
