"""What the memory of all processes of a command together is called."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.quantities import byte_size, counted
from hotloop.model.tree_memory import PROGRAM, WORKERS, TreeMemory
from hotloop.model.tuning import TuneResult

_COUNTED = {
    "PSS": "PSS: pages that processes share count once",
    "USS": "USS: pages that a process shares are left out",
}


def tree_told(tree: TreeMemory | None) -> str | None:
    """Return the peak of all processes together, and how that was counted; None: not measured."""
    if tree is None:
        return None
    return f"{byte_size(tree.peak_bytes)} in {_whose(tree)}{_roles_told(tree)} ({counted_as(tree)})"


def _roles_told(tree: TreeMemory) -> str:
    """Return what of it the loader's workers hold, where there are some."""
    workers, program = tree.roles.get(WORKERS), tree.roles.get(PROGRAM)
    if workers is None or program is None:
        return ""
    own = f"{byte_size(program.held_bytes)} the program itself"
    largest = f", the largest {byte_size(workers.largest_bytes)}" if workers.num > 1 else ""
    return f": {own}, {byte_size(workers.held_bytes)} {counted(workers.num, 'loader worker')}{largest}"


def memory_told(result: TuneResult) -> Iterator[str]:
    """Yield the memory of the original and of the plan: of all processes, and of the one that holds most."""
    tree, tree_after = result.tree_peak
    if tree is not None and tree_after is not None and tree.method == tree_after.method:
        yield (
            f"{byte_size(tree.peak_bytes)} before, in {_whose(tree)}, {byte_size(tree_after.peak_bytes)} after, in "
            f"{_whose(tree_after)} ({counted_as(tree)})"
        )
    before, after = result.peak_bytes
    if before is not None and after is not None:
        yield f"{byte_size(before)} before, {byte_size(after)} after, at the peak of the process that holds most"


def memory_in_short(result: TuneResult) -> str | None:
    """Return the memory of the original and of the plan in a line, of all processes where known; None: not measured."""
    tree, tree_after = result.tree_peak
    if tree is not None and tree_after is not None and tree.method == tree_after.method:
        sizes = f"{byte_size(tree.peak_bytes)} before, {byte_size(tree_after.peak_bytes)} after"
        return f"{sizes}, all processes together ({tree.method})"
    before, after = result.peak_bytes
    if before is None or after is None:
        return None
    return f"{byte_size(before)} before, {byte_size(after)} after, largest process"


def counted_as(tree: TreeMemory) -> str:
    """Return how the pages were counted."""
    return _COUNTED.get(tree.method, tree.method)


def _whose(tree: TreeMemory) -> str:
    return "one process" if tree.num_processes == 1 else f"{tree.num_processes:,} processes together"
