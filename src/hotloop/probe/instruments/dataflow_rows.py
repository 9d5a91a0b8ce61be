"""From the operations of a window to times by stack of lines, as builtin values."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hotloop.probe.instruments.gradient_use import NOBODY, OTHER, Task
from hotloop.probe.instruments.operation_watch import ACCUMULATE, Operation, OperationWatch

ONE_INPUT = 0.5
"""Of the backward of an operation, for the gradient of one of its two inputs: products take as long for each."""
_COLUMNS = (
    "num", "spent_ns", "neutral_ns", "first_ns", "repeated_ns", "constant_ns", "new_ns",
    "graph_ns", "backward_ns", "again_backward_ns", "unheld_ns", "dropped_ns", "unheld_graph_ns",
    "unread_ns",
)  # fmt: skip

_FOR_NOTHING = {NOBODY: "unheld_ns", OTHER: "unread_ns"}
"""Columns of the groups that have one of their own."""


def rows(watch: OperationWatch) -> dict[str, Any]:
    """Return what was seen, summed over the window: by stack, by backward pass, by table of an embedding."""
    watch.finish()
    by_node = {one.node: one for one in watch.operations if one.node >= 0}
    found: dict[int, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(_COLUMNS, 0))
    for one in watch.operations:
        row = found[one.stack]
        row["num"] += 1
        row["spent_ns"] += one.spent_ns
        row["graph_ns"] += one.spent_ns if one.node >= 0 else 0
        row[_kind(one)] += one.spent_ns
    tasks = watch.gradients.tasks
    _add_backward(watch, by_node, found)
    stacks = watch.stacks.stacks()
    lines: dict[Any, int] = {}
    return {
        "steps": watch.steps,
        "stacks": [
            {
                "lines": [lines.setdefault(line, len(lines)) for line in stacks[number][0]],
                "part": stacks[number][1],
                "parametrized": stacks[number][2],
                **row,
            }
            for number, row in found.items()
        ],
        "backwards": _backwards(watch, tasks),
        "backward_ns": sum(watch.backward.values()),
        "embeddings": _embeddings(watch, by_node, stacks, lines),
        "lines": [[*line, watch.stacks.owner(line)] for line in lines],
    }


def _add_backward(
    watch: OperationWatch, by_node: dict[int, Operation], found: dict[int, dict[str, Any]]
) -> None:
    """Add the time of backward passes to the rows of the operations that it is the backward of."""
    tasks, in_vain = watch.gradients.tasks, set()
    for (number, node), spent in watch.backward.items():
        one = by_node.get(node)
        if one is None:
            continue
        row = found[one.stack]
        row["backward_ns"] += spent
        row["again_backward_ns"] += spent if _kind(one) == "repeated_ns" else 0
        task = tasks[number] if 0 <= number < len(tasks) else None
        if task is None or not task.accumulates or task.step >= watch.steps - 1:
            continue
        column, part = _wasted(task, one.reaches, one.direct)
        row[column] += round(spent * part)
        if column == "unheld_ns" and part == 1.0 and node not in in_vain:
            in_vain.add(node)
            row["unheld_graph_ns"] += one.spent_ns


def _kind(one: Operation) -> str:
    """Return the column of an operation's time; of one that is new the column is its stack's alone."""
    if not one.counts:
        return "neutral_ns"
    if one.constant:
        return "constant_ns"
    return "repeated_ns" if one.repeated else "first_ns" if one.first else "new_ns"


def _wasted(task: Task, reaches: int, direct: int) -> tuple[str, float]:
    """Return what of a node's backward was for nothing, 0 to 1, and the column for what it led to.

    It led to parameters of nobody's, to inputs whose gradients nobody read, or to gradients that were dropped.
    """
    useful = (task.used | OTHER) & ~task.dropped | task.used
    dropped = task.dropped & ~task.used
    column = _FOR_NOTHING.get(dropped & (reaches | direct), "dropped_ns")
    if not dropped & (reaches | direct):
        return column, 0.0
    part = 1.0 if not reaches & ~dropped & (useful | task.reached) else ONE_INPUT
    return column, 0.0 if part == ONE_INPUT and not direct & dropped else part


def _backwards(watch: OperationWatch, tasks: list[Task]) -> list[dict[str, Any]]:
    """Return each line that calls backward: how often, its time, and of that what an earlier pass had gone through."""
    nodes: dict[int, dict[int, int]] = defaultdict(dict)
    for (number, node), spent in watch.backward.items():
        nodes[number][node] = spent
    found: dict[Any, dict[str, Any]] = {}
    for number, task in enumerate(tasks):
        if task.at is None:
            continue
        row = found.setdefault(task.at, {**task.at._asdict(), "num": 0, "spent_ns": 0, "again_ns": 0})
        row["num"] += 1
        row["spent_ns"] += sum(nodes[number].values())
        row["again_ns"] += _again(number, task, tasks, nodes)
    return list(found.values())


def _again(number: int, task: Task, tasks: list[Task], nodes: dict[int, dict[int, int]]) -> int:
    """Return the time in nodes that an earlier pass went through, whose gradients this one adds to."""
    earlier = [
        one
        for one in task.after
        if tasks[one].step == task.step and tasks[one].accumulates and not tasks[one].keeps
    ]
    if not task.accumulates or not earlier:
        return 0
    before = {node for one in earlier for node in nodes[one] if node >= 0}
    shared = sum(spent for node, spent in nodes[number].items() if node in before)
    # What adds to gradients that are there already would not be done again either.
    return shared + nodes[number].get(ACCUMULATE, 0) if shared else 0


def _embeddings(
    watch: OperationWatch, by_node: dict[int, Operation], stacks: list[Any], lines: dict[Any, int]
) -> list[dict[str, Any]]:
    """Return each line that looks rows up in a table whose gradients are dense for its look-ups' sake."""
    found: dict[Any, dict[str, Any]] = {}
    tied = set()
    for gradient in watch.tables.made:
        one = by_node.get(gradient.node)
        if one is None:
            continue
        key = (one.stack, gradient.num_rows, gradient.width)
        row = found.setdefault(
            key,
            {
                "lines": [lines.setdefault(line, len(lines)) for line in stacks[one.stack][0]],
                "num_rows": gradient.num_rows, "width": gradient.width, "num": 0, "used": 0, "spent_ns": 0,
            },
        )  # fmt: skip
        row["num"] += 1
        row["used"] += gradient.used
        row["spent_ns"] += gradient.spent_ns
        if gradient.tied:
            tied.add(key)
    return [row for key, row in found.items() if key not in tied]
