"""Two traces of one program compared: what became faster, slower, new and gone, place by place."""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import msgspec

from hotloop.trace.analysis import TraceAnalysis, analyze_linked
from hotloop.trace.facts.call_paths import CallPaths, call_paths
from hotloop.trace.facts.timeline import DeviceTime
from hotloop.trace.link.linked_trace import LinkedTrace, link_trace
from hotloop.trace.read.columns import NONE
from hotloop.trace.read.trace import Trace

_HALF = ("c10::Half", "c10::BFloat16", "c10::Float8")
_EXPLAINED = 0.9
"""A row is left out when one row inside it has at least this much of its change."""
_NOTABLE = 0.05
"""Changes of less than 5% of an operator are left out of `slower_in_half`: two runs differ by that much."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One place of the call tree before and after; times are per step where both traces have steps."""

    path: tuple[str, ...]
    status: str
    """changed, added or removed."""
    num_before: float
    num_after: float
    device_before_us: float
    device_after_us: float
    host_before_us: float
    host_after_us: float
    types_before: str | None = None
    types_after: str | None = None
    is_host: bool = False
    """Host times are compared: the traces have no device."""

    @property
    def before_us(self) -> float:
        """Time before, on what is compared."""
        return self.host_before_us if self.is_host else self.device_before_us

    @property
    def after_us(self) -> float:
        """The same after."""
        return self.host_after_us if self.is_host else self.device_after_us

    @property
    def delta_us(self) -> float:
        """Time after less before."""
        return self.after_us - self.before_us


class TraceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What changed from one trace to the other."""

    before: str
    after: str
    per_step: bool
    """Times are divided by the number of steps; False: one of the traces has none."""
    device_before: DeviceTime | None
    device_after: DeviceTime | None
    num_steps_before: int
    num_steps_after: int
    step_before_us: float | None
    """Median length of a step on the host, or the device's work for one, where that is longer: the host ran ahead."""
    step_after_us: float | None
    idle_causes_before: dict[str, float]
    idle_causes_after: dict[str, float]
    operators: tuple[Change, ...]
    """By absolute change of time, the largest first; what a row inside explains is left out."""
    modules: tuple[Change, ...]
    slower_in_half: tuple[Change, ...]
    """Places that went to half precision and take longer there."""
    schema: int = 1


class _Place(NamedTuple):
    num: float
    device_us: float
    host_us: float
    types: str | None


def diff_traces(before: Trace, after: Trace) -> TraceDiff:
    """Compare two traces; places are matched by their path, or else by module and operator."""
    linked = link_trace(before), link_trace(after)
    old, new = (analyze_linked(one, limit=0) for one in linked)
    per_step = bool(old.steps and new.steps)
    places = [
        _places(one, call_paths(one), len(analysis.steps) if per_step else 1)
        for one, analysis in zip(linked, (old, new), strict=True)
    ]
    is_host = old.device is None and new.device is None
    changes = [msgspec.structs.replace(change, is_host=is_host) for change in _match(*places)]
    operators = [change for change in changes if not change.path[-1].startswith("nn.Module: ")]
    return TraceDiff(
        before=before.label,
        after=after.label,
        per_step=per_step,
        device_before=old.device,
        device_after=new.device,
        num_steps_before=len(old.steps),
        num_steps_after=len(new.steps),
        step_before_us=_step(old),
        step_after_us=_step(new),
        idle_causes_before=old.idle_causes,
        idle_causes_after=new.idle_causes,
        operators=_explaining(operators),
        modules=_by_change(change for change in changes if change.path[-1].startswith("nn.Module: ")),
        slower_in_half=_by_change(change for change in operators if _is_slower_in_half(change)),
    )


def _step(analysis: TraceAnalysis) -> float | None:
    if not analysis.steps:
        return None
    work = analysis.device.busy_us / len(analysis.steps) if analysis.device else 0.0
    return max(median(step.span_us for step in analysis.steps), work)


def _places(linked: LinkedTrace, paths: CallPaths, num_steps: int) -> dict[tuple[str, ...], _Place]:
    columns = (paths.num.tolist(), paths.device_ns.tolist(), paths.host_ns.tolist(), paths.first_row.tolist())
    return {
        path: _Place(num / num_steps, device / 1000 / num_steps, host / 1000 / num_steps, _types(linked, row))
        for path, num, device, host, row in zip(paths.paths, *columns, strict=True)
    }


def _types(linked: LinkedTrace, row: int) -> str | None:
    argument = int(linked.argument_row[row])
    index = int(linked.trace.operators.types[argument]) if argument != NONE else NONE
    return (
        "".join(linked.trace.texts[index].decode("utf-8", errors="replace").split()) if index >= 0 else None
    )


def _match(before: dict[tuple[str, ...], _Place], after: dict[tuple[str, ...], _Place]) -> Iterator[Change]:
    for path, was in before.items():
        if path in after:
            yield _change(path, "changed", was, after[path])
    old = _by_module(path for path in before if path not in after)
    new = _by_module(path for path in after if path not in before)
    for key in {**old, **new}:  # in their order, so that ties come out alike each time
        # One of each: the same operator of the same module, moved by a layer that came or went around it.
        if len(old.get(key, ())) == 1 and len(new.get(key, ())) == 1:
            yield _change(new[key][0], "changed", before[old[key][0]], after[new[key][0]])
            continue
        for path in old.get(key, ()):
            yield _change(path, "removed", before[path], _NOTHING)
        for path in new.get(key, ()):
            yield _change(path, "added", _NOTHING, after[path])


_NOTHING = _Place(0.0, 0.0, 0.0, None)


def _by_module(paths: Iterator[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in paths:
        modules = tuple(name for name in path[:-1] if name.startswith("nn.Module: "))
        found.setdefault((*modules, path[-1]), []).append(path)
    return found


def _change(path: tuple[str, ...], status: str, before: _Place, after: _Place) -> Change:
    return Change(
        path=path,
        status=status,
        num_before=before.num,
        num_after=after.num,
        device_before_us=before.device_us,
        device_after_us=after.device_us,
        host_before_us=before.host_us,
        host_after_us=after.host_us,
        types_before=before.types,
        types_after=after.types,
    )


def _by_change(changes: Iterator[Change]) -> tuple[Change, ...]:
    return tuple(sorted((c for c in changes if c.delta_us), key=lambda change: -abs(change.delta_us)))


def _explaining(changes: list[Change]) -> tuple[Change, ...]:
    """Rows without those whose change happens inside one of their children."""
    largest: dict[tuple[str, ...], float] = {}
    for change in changes:
        outer = change.path[:-1]
        if abs(change.delta_us) > abs(largest.get(outer, 0.0)):
            largest[outer] = change.delta_us
    return _by_change(
        change for change in changes if _share(largest.get(change.path, 0.0), change.delta_us) < _EXPLAINED
    )


def _share(inner: float, outer: float) -> float:
    return inner / outer if outer else 0.0


def _is_slower_in_half(change: Change) -> bool:
    if not change.num_before or not change.num_after:
        return False
    was_half, is_half = (
        any(half in (types or "") for half in _HALF) for types in (change.types_before, change.types_after)
    )
    before, after = change.device_before_us / change.num_before, change.device_after_us / change.num_after
    return is_half and not was_half and after > before * (1 + _NOTABLE)


__all__ = ["Change", "TraceDiff", "diff_traces"]
