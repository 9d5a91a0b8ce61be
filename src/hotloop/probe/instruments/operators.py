"""Which operators the steps spend their time in: torch.profiler, for a few steps."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic_ns
from typing import Any

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.operator_spans import device_busy_us, operator_spans
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe

MAX_ROWS = 200
"""Kept, by time; the sums are of all."""
_MOVERS = frozenset(
    f"aten::{name}" for name in ("copy_", "_to_copy", "clone", "contiguous", "fill_", "zero_", "add_", "sum")
)
"""Inside a product they bring its arguments into shape, and compute none of it, however long they take."""
_WRAPPERS = ("ProfilerStep", "[memory]", "[pl]", "DataLoader", "enumerate(")
"""Events that stand around operators; their own time is Python's between them."""


class Operators(Instrument):
    """Time, shapes and memory of the operators, where a product's FLOPs are spent, and when each of them ran.

    A program that starts a profiler of its own gets it: this one gives way.
    """

    min_steps = 2
    max_steps = 5
    profiles = True
    # Reading an event back costs about 50 us of the program's time: half a second of a loop of many
    # small operators (10 us each) makes 50,000 of them.
    seconds = 0.3

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "operators")
        self._ends_ns: list[int] = []
        """Of the steps."""

    def start(self) -> None:
        """Start the profiler.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        self._ends_ns = [monotonic_ns()]
        self._profiler.start(record_shapes=True, profile_memory=True)

    def step(self) -> None:
        """Note when it ended."""
        self._ends_ns.append(monotonic_ns())

    def stop(self) -> Any:
        """Stop the profiler and sum up what it saw."""
        profiler = self._profiler.stop()
        rows = _Rows()
        for event in profiler.function_events:
            rows.add(event)
        begin_ns = self._profiler.monotonic_ns(profiler.kineto_results.trace_start_ns())
        spans = operator_spans(profiler.function_events, begin_ns, self._ends_ns)
        busy_us = device_busy_us(profiler.function_events)
        return {**rows.value(on_device=bool(profiler.use_device)), "busy_us": busy_us, "spans": spans}


class _Rows:
    """Events summed up by operator and shapes."""

    def __init__(self) -> None:
        from torch.utils.flop_counter import flop_registry

        self._products = {f"aten::{getattr(packet, '__name__', '')}" for packet in flop_registry}
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._num = 0

    def add(self, event: Any) -> None:
        """Add one call; what ran on the device is in the operator's own device time."""
        if event.device_type.name != "CPU" or event.name.startswith(_WRAPPERS):
            return
        if "::" in event.name and not event.name.startswith("autograd::"):
            self._num += not _inside_operator(event)
        shapes = _shapes(event)
        row = self._rows.setdefault((event.name, repr(shapes)), _empty(event.name, shapes))
        row["count"] += 1
        row["self_us"] += event.self_cpu_time_total
        row["device_us"] += event.self_device_time_total
        row["bytes"] += max(0, event.self_device_memory_usage) + max(0, event.self_cpu_memory_usage)
        if event.name in self._products and not _inside(event, self._products):
            self._count_product(event, shapes)

    def _count_product(self, event: Any, shapes: list[Any]) -> None:
        """Book the product's FLOPs where its time is: an inner operator of a backend, as a rule."""
        able = [each for each in _tree(event) if each.name not in _MOVERS]
        costliest = max(able, key=lambda each: each.self_cpu_time_total + each.self_device_time_total)
        inner = _shapes(costliest)
        row = self._rows.setdefault((costliest.name, repr(inner)), _empty(costliest.name, inner))
        products = row["products"]
        key = repr([event.name, shapes])
        name, its_shapes, count = products.get(key, (event.name, shapes, 0))
        products[key] = (name, its_shapes, count + 1)

    def value(self, *, on_device: bool) -> dict[str, Any]:
        """Return the most expensive rows, and the sums over all."""
        rows = sorted(self._rows.values(), key=lambda row: -(row["device_us"] or row["self_us"]))
        return {
            "rows": [{**row, "products": list(row["products"].values())} for row in rows[:MAX_ROWS]],
            "num": self._num,
            "self_us": sum(row["self_us"] for row in rows),
            "device_us": sum(row["device_us"] for row in rows) if on_device else None,
        }


def _empty(name: str, shapes: list[Any]) -> dict[str, Any]:
    sums = {"count": 0, "self_us": 0.0, "device_us": 0.0, "bytes": 0}
    return {"name": name, "shapes": shapes, "products": {}, **sums}


def _shapes(event: Any) -> list[Any]:
    """The shapes of its tensors: scalars and absent arguments have none."""
    return [list(shape) for shape in event.input_shapes or () if shape]


def _tree(event: Any) -> Iterator[Any]:
    yield event
    for child in event.cpu_children:
        yield from _tree(child)


def _ancestors(event: Any) -> Iterator[Any]:
    parent = event.cpu_parent
    while parent is not None:
        yield parent
        parent = parent.cpu_parent


def _inside(event: Any, names: set[str]) -> bool:
    return any(parent.name in names for parent in _ancestors(event))


def _inside_operator(event: Any) -> bool:
    return any(
        "::" in parent.name and not parent.name.startswith("autograd::") for parent in _ancestors(event)
    )
