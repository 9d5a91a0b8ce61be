"""Which operators the steps spend their time in: torch.profiler, for a few steps."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.probe import Probe

MAX_ROWS = 200
"""Kept, by time; the sums are of all."""
_STARTERS = ("_prepare_profiler", "_enable_profiler", "_enable_profiler_legacy")
"""Functions of `torch.autograd.profiler` through which every profiler of a program is started."""
_MOVERS = frozenset(
    f"aten::{name}" for name in ("copy_", "_to_copy", "clone", "contiguous", "fill_", "zero_", "add_", "sum")
)
"""Inside a product they bring its arguments into shape, and compute none of it, however long they take."""
_WRAPPERS = ("ProfilerStep", "[memory]", "[pl]", "DataLoader", "enumerate(")
"""Events that stand around operators; their own time is Python's between them."""


class Operators(Instrument):
    """Time, shapes and memory of the operators, and where a product's FLOPs are spent.

    A program that starts a profiler of its own gets it: this one gives way.
    """

    min_steps = 2
    max_steps = 5
    # Reading an event back costs about 50 us of the program's time: half a second of a loop of many
    # small operators (10 us each) makes 50,000 of them.
    seconds = 0.3

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler: Any = None
        self._gave_way = False
        self._restore: list[Callable[[], None]] = []

    def start(self) -> None:
        """Start the profiler.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        import torch
        from torch.autograd import profiler

        if torch._C._autograd._profiler_enabled() or _has_profiler():
            raise Unavailable("the program uses torch.profiler itself")
        device = "cuda" if torch.cuda.is_initialized() else None
        self._profiler = profiler.profile(use_device=device, record_shapes=True, profile_memory=True)
        self._profiler.__enter__()
        for name in _STARTERS:
            self._give_way_to(profiler, name)

    def stop(self) -> Any:
        """Stop the profiler and sum up what it saw."""
        self._end()
        if self._gave_way:
            raise Unavailable("the program started torch.profiler itself meanwhile")
        rows = _Rows()
        for event in self._profiler.function_events:
            rows.add(event)
        return rows.value(on_device=bool(self._profiler.use_device))

    def _end(self) -> None:
        while self._restore:
            self._restore.pop()()
        if not self._gave_way and self._profiler is not None:
            self._profiler.__exit__(None, None, None)

    def _give_way_to(self, module: Any, name: str) -> None:
        original = getattr(module, name, None)
        if original is None:
            return

        def starter(*args: Any, **kwargs: Any) -> Any:
            with self.probe.survive("deep:operators"):
                self._end()
                self._gave_way = True
            return original(*args, **kwargs)

        setattr(module, name, starter)
        self._restore.append(lambda: setattr(module, name, original))


def _has_profiler() -> bool:
    """Whether the program holds a profiler: one with a schedule is prepared long before it is started."""
    from torch.autograd.profiler import profile
    from torch.profiler import profile as scheduled

    return any(issubclass(type(each), (profile, scheduled)) for each in gc.get_objects())


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
