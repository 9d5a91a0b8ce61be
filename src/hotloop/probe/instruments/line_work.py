"""The work of each line: operators in the forward, and the graph nodes it makes with their time in the backward.

The lines come from `line_trace`, operators and nodes from torch's profiler, in the same few steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from time import monotonic_ns
from typing import Any, NamedTuple

import torch

from hotloop.probe.instruments.instrument import Instrument, Unavailable
from hotloop.probe.instruments.line_trace import LineTrace
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe

_NODE = "autograd::engine::evaluate_function: "
_TOGETHER_NS = 50_000
"""Nodes that follow one another so soon are of one backward; the engine's own time between them is theirs."""
NUM_CALIBRATING = 64
COLD = 2.0
"""Among others an operator on a few numbers takes about twice as long as in a row of its like, which the processor's
caches hold (1.6 to 2.3 times: `mean`, `sub`, `pow` on four numbers, torch 2.13)."""


class Span(NamedTuple):
    """One operator, or one node of the graph."""

    name: str
    begin_ns: int
    end_ns: int
    node: int
    """Its number; of an operator, the number of the node that it makes, or of the next one; -1: none."""
    thread: int


class LineWork(Instrument):
    """Follows lines, operators and nodes.

    Args:
        probe: the probe.
    """

    min_steps = 1
    max_steps = 3
    seconds = 0.2

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "line_work")
        self._trace: LineTrace | None = None
        self._whole = (0, 0)
        """Steps that ended while it followed, and the lines until then."""
        self._broken = ""

    def start(self) -> None:
        """Begin to follow.

        Raises:
            Unavailable: the program is traced or profiled already, or runs compiled code, which has no lines.
        """
        num_nodes = getattr(torch._C._autograd, "_get_sequence_nr", None)
        if num_nodes is None:
            raise Unavailable("this torch does not number the nodes of its graph")
        if sys.gettrace() is not None:
            raise Unavailable("the program has a trace function of its own")
        if "torch._dynamo" in sys.modules and _compiles():
            raise Unavailable("the program runs compiled code, which has no lines")
        self._profiler.start()
        self._trace = LineTrace(num_nodes)
        self._trace.start(sys._getframe(1))

    def step(self) -> None:
        """Note that a step is whole."""
        if self._trace is not None and not self._trace.full and not self._broken:
            self._whole = (self._whole[0] + 1, self._trace.num_events)

    def stop(self) -> dict[str, Any]:
        """Stop following; return the work of each place.

        Raises:
            Unavailable: no step was followed to its end.
        """
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.end()
        calibrates_ns = monotonic_ns()
        _calibrate()
        profiler = self._profiler.stop()
        steps, lines = self._whole
        if trace is None or self._broken:
            raise Unavailable(self._broken or "it was not started")
        if not steps:
            lines = trace.num_events  # of a step with more lines than are followed, those of its beginning
        spans = sorted(
            self._spans(profiler.kineto_results.events()), key=lambda one: (one.begin_ns, -one.end_ns)
        )
        return {"steps": steps, **_value(trace, lines, spans, calibrates_ns)}

    def step_aside(self) -> None:
        """Be gone while torch.compile reads code; it does not come back."""
        self._broken = "the program compiled code meanwhile"
        if self._trace is not None:
            self._trace.end()

    def after_fork(self) -> None:
        """Leave a forked child alone."""
        if self._trace is not None:
            self._trace.end()

    def _spans(self, events: Iterable[Any]) -> Iterator[Span]:
        for event in events:
            name = event.name()
            if "::" in name and event.device_type().name == "CPU":
                begin_ns = self._profiler.monotonic_ns(event.start_ns())
                end_ns = begin_ns + event.duration_ns()
                yield Span(name, begin_ns, end_ns, event.sequence_nr(), event.start_thread_id())


def _compiles() -> bool:
    from torch._dynamo.utils import counters

    return bool(counters["frames"]["total"])


def _calibrate() -> None:
    """Run operators and nodes that compute next to nothing: their time is that of calling one."""
    with torch.enable_grad():
        start = torch.ones((), device="cpu", requires_grad=True)
        value = start
        for _ in range(NUM_CALIBRATING):
            value = value * 1.0
        # Not `torch.autograd.grad`, which is one of the hook points.
        engine = torch.autograd.Variable._execution_engine
        engine.run_backward((value,), (torch.ones_like(value),), False, False, (start,), True, False)


def _value(trace: LineTrace, num: int, spans: Sequence[Span], calibrates_ns: int) -> dict[str, Any]:
    """Return the work of each place.

    Args:
        trace: of the lines.
        num: lines that count.
        spans: operators and nodes, in order.
        calibrates_ns: from here on they are our own, and as quick as they can be.
    """
    events = trace.events(num)
    begin_ns, end_ns = events[0][2], events[-1][2]
    lead = next((one.thread for one in reversed(spans) if one.begin_ns >= calibrates_ns), 0)
    operators = [call for call in _outermost(spans, lead) if not call.span.name.startswith(_NODE)]
    nodes = list(_nodes(spans))
    operator_ns, node_ns = (
        COLD
        * median(
            [each.spent_ns / each.size for each in found if each.span.begin_ns >= calibrates_ns] or [0.0]
        )
        for found in (operators, nodes)
    )
    rows = [_Row() for _ in trace.places]
    for (place, begins, since_ns), (_, _, until_ns) in pairwise(events):
        if place >= 0:
            rows[place].runs += begins
            rows[place].wall_ns += until_ns - since_ns
    for each in operators:
        moment = each.span.begin_ns
        found = trace.place_at(moment) if begin_ns <= moment < end_ns else None
        if found is not None:
            rows[found].add_operator(each, operator_ns)
    backward_ns = 0
    for each in nodes:
        if begin_ns <= each.span.begin_ns < end_ns:
            backward_ns += each.spent_ns
            found = trace.place_of(each.span.node) if each.span.node >= 0 else None
            if found is not None:
                rows[found].add_node(each, node_ns)
    return {"places": trace.places, "rows": [vars(row) for row in rows], "backward_ns": backward_ns}


class _Row:
    """The work of one place, without what it calls.

    Attributes:
        runs: how often its line began.
        wall_ns: while it ran.
        operators: names of what it called, and how often.
        operators_ns: in them.
        fixed_ns: of that, what calling them costs, whatever they compute.
        nodes: that it made, and the backward evaluated.
        backward_ns: in them.
        backward_fixed_ns: of that, what calling them costs.
    """

    def __init__(self) -> None:
        self.runs = self.wall_ns = self.operators_ns = self.fixed_ns = 0
        self.nodes = self.backward_ns = self.backward_fixed_ns = 0
        self.operators: dict[str, int] = {}

    def add_operator(self, call: _Call, fixed_ns: float) -> None:
        """Add a call of an operator."""
        self.operators[call.span.name] = self.operators.get(call.span.name, 0) + 1
        self.operators_ns += call.spent_ns
        self.fixed_ns += min(call.spent_ns, round(fixed_ns * call.size))

    def add_node(self, call: _Call, fixed_ns: float) -> None:
        """Add the evaluation of a node."""
        self.nodes += 1
        self.backward_ns += call.spent_ns
        self.backward_fixed_ns += min(call.spent_ns, round(fixed_ns * call.size))


class _Call(NamedTuple):
    """One outermost operator, or one node."""

    span: Span
    spent_ns: int
    size: int
    """Itself and the operators inside it: each has a fixed cost."""


def _outermost(spans: Iterable[Span], thread: int) -> Iterator[_Call]:
    """Yield what a thread called, without what is called inside of it."""
    outer, size = None, 0
    for one in spans:
        if one.thread != thread:
            continue
        if outer is not None and one.begin_ns < outer.end_ns:
            size += 1
            continue
        if outer is not None:
            yield _Call(outer, outer.end_ns - outer.begin_ns, size)
        outer, size = one, 1
    if outer is not None:
        yield _Call(outer, outer.end_ns - outer.begin_ns, size)


def _nodes(spans: Sequence[Span]) -> Iterator[_Call]:
    """Yield the nodes of the graph that were evaluated, each with its time up to the next one."""
    for thread in {one.thread for one in spans if one.name.startswith(_NODE)}:
        node, size = None, 0
        for one in spans:
            if one.thread != thread:
                continue
            if one.name.startswith(_NODE):
                if node is not None:
                    yield _Call(node, _until(node, one.begin_ns), size)
                node, size = one, 1
            elif node is not None and one.begin_ns < node.end_ns:
                size += 1
        if node is not None:
            yield _Call(node, node.end_ns - node.begin_ns, size)


def _until(node: Span, next_ns: int) -> int:
    follows = next_ns - node.end_ns <= _TOGETHER_NS
    return (next_ns if follows else node.end_ns) - node.begin_ns
