"""From lines, operators and nodes of the graph to the work of each line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from hotloop.probe.instruments.line_trace import LineTrace

_NODE = "autograd::engine::evaluate_function: "
_TOGETHER_NS = 50_000
"""Nodes that follow one another so soon are of one backward; the engine's own time between them is theirs."""
UNUSUAL = 3.0
"""Times the median of its like: the thread had to leave its core in the middle of it, and no more than this counts."""
COLD = 4.0
"""Times the cost of calling operators in a row of their like, on one number: among others they are not in the caches,
and what each node computes is added to what others have. Of three loops over rows and pairs, 5.5, 12 and 24 times as
slow as without, this gives 5.6, 13 and 9.7; a factor of 2 gives 4.2, 6.5 and 7.2."""


class Span(NamedTuple):
    """One operator, or one node of the graph."""

    name: str
    begin_ns: int
    end_ns: int
    node: int
    """Its number; of an operator, the number of the node that it makes, or of the next one; -1: none."""
    thread: int


def line_sums(trace: LineTrace, num: int, spans: Sequence[Span], calibrates_ns: int) -> dict[str, Any]:
    """Return the work of each place.

    Args:
        trace: of the lines.
        num: lines that count.
        spans: operators and nodes, in order.
        calibrates_ns: from here on they are our own, and as quick as they can be.
    """
    begin_ns, end_ns = trace.window_ns(num)
    lead = next((one.thread for one in reversed(spans) if one.begin_ns >= calibrates_ns), 0)
    operators = [call for call in _outermost(spans, lead) if not call.span.name.startswith(_NODE)]
    nodes = list(_nodes(spans))
    fixed_operator_ns, fixed_node_ns = (
        COLD
        * median([one.spent_ns / one.size for one in found if one.span.begin_ns >= calibrates_ns] or [0.0])
        for found in (operators, nodes)
    )
    rows = [_Row() for _ in trace.places]
    stretches = trace.stretches(num)
    for place, begins, spent_ns in stretches:
        if place >= 0:
            rows[place].runs += begins
            rows[place].spent_ns += spent_ns
    for one in operators:
        moment = one.span.begin_ns
        at = trace.place_at(moment) if begin_ns <= moment < end_ns else None
        if at is not None:
            rows[at].operators[one.span.name].append(one)
    elsewhere = _Row()
    inside = [one for one in nodes if begin_ns <= one.span.begin_ns < end_ns]
    evaluating = {trace.stretch_at(one.span.begin_ns) for one in inside if one.span.thread == lead}
    for one in _not_interrupted(inside, lead, sum(stretches[at][2] for at in evaluating)):
        at = trace.place_of(one.span.node) if one.span.node >= 0 else None
        (rows[at] if at is not None else elsewhere).nodes[one.span.name].append(one)
    values = [row.value(fixed_operator_ns, fixed_node_ns) for row in rows]
    others_ns = elsewhere.value(fixed_operator_ns, fixed_node_ns)["backward_ns"]
    backward_ns = others_ns + sum(value["backward_ns"] for value in values)
    return {"places": trace.places, "rows": values, "backward_ns": backward_ns}


def _not_interrupted(nodes: Sequence[_Call], lead: int, spent_ns: int) -> list[_Call]:
    """Return nodes that take no more together than the thread had of the processor.

    Where they do, others ran in the middle of the longest, which are cut to one length.

    Args:
        nodes: all.
        lead: the thread of which the processor's time is known.
        spent_ns: in the stretches in which it evaluated nodes.
    """
    left, most_ns = spent_ns, 0.0
    lengths = sorted(one.spent_ns for one in nodes if one.span.thread == lead)
    for number, length in enumerate(lengths):
        most_ns = left / (len(lengths) - number)
        if length > most_ns:
            break
        left -= length
    else:
        return list(nodes)
    return [
        one._replace(spent_ns=min(one.spent_ns, round(most_ns))) if one.span.thread == lead else one
        for one in nodes
    ]


class _Row:
    """The work of one place, without what it calls.

    Attributes:
        runs: how often its line began.
        spent_ns: processor time of the thread while it ran.
        operators: calls of each name.
        nodes: evaluations of each name, of those that it made.
    """

    def __init__(self) -> None:
        self.runs = self.spent_ns = 0
        self.operators: defaultdict[str, list[_Call]] = defaultdict(list)
        self.nodes: defaultdict[str, list[_Call]] = defaultdict(list)

    def value(self, fixed_operator_ns: float, fixed_node_ns: float) -> dict[str, Any]:
        """Return times, and what of them is the cost of calling, whatever is computed.

        Args:
            fixed_operator_ns: what an operator costs that computes nothing.
            fixed_node_ns: and a node.
        """
        operators = [_times(calls, fixed_operator_ns) for calls in self.operators.values()]
        nodes = [_times(calls, fixed_node_ns) for calls in self.nodes.values()]
        inside_ns, fixed_ns = (sum(each) for each in zip(*operators, strict=True)) if operators else (0, 0)
        return {
            "runs": self.runs,
            "spent_ns": self.spent_ns,
            "operators": {name: len(calls) for name, calls in self.operators.items()},
            "operators_ns": min(inside_ns, self.spent_ns),
            "fixed_ns": min(fixed_ns, self.spent_ns),
            "nodes": sum(len(calls) for calls in self.nodes.values()),
            "backward_ns": sum(spent for spent, _ in nodes),
            "backward_fixed_ns": sum(fixed for _, fixed in nodes),
        }


def _usual(spent_ns: Sequence[float]) -> list[float]:
    """Return times without what another program took in the middle of them."""
    most = UNUSUAL * median(spent_ns) if spent_ns else 0.0
    return [min(one, most) for one in spent_ns]


def _times(calls: Sequence[_Call], fixed_ns: float) -> tuple[int, int]:
    """Return the time of calls of one name, and what of it they cost whatever they compute."""
    usual = _usual([call.spent_ns for call in calls])
    fixed = [min(spent, fixed_ns * call.size) for spent, call in zip(usual, calls, strict=True)]
    return round(sum(usual)), round(sum(fixed))


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
