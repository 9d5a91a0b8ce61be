"""The lines under which operations of a kind were called: the outermost that calls nothing else, or the innermost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.price.cost import Cost, measured_step, phase_share
from hotloop.model.dataflow import CodeLine, Dataflow, OperationGroup
from hotloop.model.observation import Observation, Phase

PURE = 0.1
"""Of the time under a line, in operations of another kind: calls of the user's make views and sizes beside."""
WHOLE = 0.9
"""Of all operations: a line under which so much is called holds the training itself."""
UNSURE = 0.3
"""Of a cost, up and down: a few steps under a dispatcher mode, in which each operation is some 20 us longer."""


@dataclass(frozen=True)
class Spent:
    """Time per step of a group of operations, by what it is part of, and what stands beside it under the same lines."""

    forward_s: float = 0.0
    backward_s: float = 0.0
    loading_s: float = 0.0
    beside_s: float = 0.0

    @property
    def whole_s(self) -> float:
        """Without what stands beside it."""
        return self.forward_s + self.backward_s + self.loading_s


@dataclass(frozen=True)
class SpentLine:
    """A line to change, and what goes with it."""

    at: CodeLine
    spent: Spent
    groups: tuple[OperationGroup, ...]
    others: tuple[int, ...]
    """More lines of the same function."""


def dataflow_of(observation: Observation) -> Dataflow:
    """Return the dataflow of the step.

    Raises:
        Abstain: it was not looked at.
    """
    flow = observation.deep.dataflow if observation.deep else None
    if flow is None:
        raise Abstain("the dataflow of the step (a run without --no-deep and --full, and nothing compiled)")
    return flow


def spent_lines(
    flow: Dataflow, measure: Callable[[OperationGroup], Spent], *, pure: float = PURE
) -> Iterator[SpentLine]:
    """Yield the lines to change, one a function: the one with the most time.

    Args:
        flow: the window.
        measure: returns what of a group is of the kind.
        pure: of the time under a line, in what stands beside.
    """
    measured = [(group, measure(group)) for group in flow.groups if group.part != "optimizer"]
    under: dict[int, Spent] = {}
    spent_under: defaultdict[int, float] = defaultdict(float)
    for group, spent in measured:
        for number in set(group.lines):
            under[number] = _sum((under.get(number, Spent()), spent))
            spent_under[number] += group.spent_s
    whole = sum(group.spent_s for group, _ in measured)
    loops = {number for number, spent in spent_under.items() if spent >= WHOLE * whole}
    chosen: dict[int, list[tuple[OperationGroup, Spent]]] = {}
    for group, spent in measured:
        if spent.whole_s:
            line = _line(flow, group, under, loops, pure)
            if line is not None:
                chosen.setdefault(line, []).append((group, spent))
    yield from _by_function(flow, chosen)


def _line(
    flow: Dataflow, group: OperationGroup, under: dict[int, Spent], loops: set[int], pure: float
) -> int | None:
    """Return the line of a group: the user's, unless all of the training is under that."""
    users = [one for one in group.lines if flow.lines[one].owner == "user"]
    own = users if any(one not in loops for one in users) else list(group.lines)
    for number in own:
        spent = under[number]
        if number not in loops and spent.beside_s <= pure * (spent.whole_s + spent.beside_s):
            return number
    return own[-1] if own else None


def _by_function(
    flow: Dataflow, chosen: dict[int, list[tuple[OperationGroup, Spent]]]
) -> Iterator[SpentLine]:
    functions: dict[tuple[str, str], list[int]] = {}
    for number in chosen:
        at = flow.lines[number]
        functions.setdefault((at.path, at.function), []).append(number)
    for numbers in functions.values():
        spent = {number: _sum(one for _, one in chosen[number]) for number in numbers}
        first = max(numbers, key=lambda number: spent[number].whole_s)
        yield SpentLine(
            at=flow.lines[first],
            spent=_sum(spent.values()),
            groups=tuple(group for number in numbers for group, _ in chosen[number]),
            others=tuple(sorted({flow.lines[number].line for number in numbers} - {flow.lines[first].line})),
        )


def _sum(parts: Iterable[Spent]) -> Spent:
    kept = list(parts)
    return Spent(*(sum(getattr(one, each.name) for one in kept) for each in fields(Spent)))


def dataflow_cost(observation: Observation, flow: Dataflow, spent: Spent) -> Cost:
    """Return what operations cost: their shares of the window's forward, backward and loading, of those phases."""
    step, num = measured_step(observation), flow.num_steps
    parts = (
        (spent.forward_s, flow.spent_s() / num, Phase.FORWARD),
        (spent.backward_s, flow.backward_s / num, Phase.BACKWARD),
        (spent.loading_s, flow.spent_s("loading") / num, Phase.DATA),
    )
    share = sum(
        min(1.0, part / whole) * phase_share(observation, phase) for part, whole, phase in parts if whole
    )
    return Cost(share, share * (1.0 - UNSURE), min(1.0, share * (1.0 + UNSURE)), step.whole_s)


def said_lines(one: SpentLine) -> str:
    """Say the other lines of the function; empty: there are none."""
    if not one.others:
        return ""
    numbers = ", ".join(map(str, one.others[:5])) + (", ..." if len(one.others) > 5 else "")
    return f" (with {'line' if len(one.others) == 1 else 'lines'} {numbers})"
