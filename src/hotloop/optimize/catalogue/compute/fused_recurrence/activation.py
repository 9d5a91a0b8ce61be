"""The activation of fused_recurrence: all steps of a cell in one call, once it was seen to compute the same."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from hotloop.optimize.catalogue.compute.fused_recurrence.cells import fused
from hotloop.optimize.catalogue.compute.fused_recurrence.one_call import Fused
from hotloop.optimize.catalogue.compute.fused_recurrence.pattern import ROW, time_loops
from hotloop.optimize.catalogue.compute.fused_recurrence.source_edit import CALL, put_before
from hotloop.optimize.comparison.replaced_loops import ReplacedLoops
from hotloop.optimize.comparison.same_values import along, require_same
from hotloop.optimize.program.containers import map_tensors
from hotloop.patterns.refusal import NotThis

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
Told = tuple[Any, int, tuple[Any, ...], bool]
"""A cell, the number of the one whose output it is given, its states, and whether `state[0]` alone is read."""


class Steps(list[Any]):
    """What all steps of a loop's cells gave, cell by cell."""

    def numbered(self, over: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """Go over what the loop goes over, with the number of the step."""
        return enumerate(over)


@dataclass(frozen=True)
class Made:
    """What one cell gave.

    Attributes:
        outputs: of each step.
        final: the last state, as the cell gives it.
        is_pair: a state is two tensors; the second is known of the last step alone.
    """

    outputs: Sequence[Any]
    final: Any
    is_pair: bool

    def __getitem__(self, step: int) -> Any:
        """Return the state behind a step."""
        return (self.outputs[step], None) if self.is_pair else self.outputs[step]


Make = Callable[[Any, Sequence[Told]], Steps]
"""Makes the steps of some cells, of rows."""


class RecurrentCalls(ReplacedLoops):
    """Makes the steps of loops over time in one call."""

    loops: ClassVar[str] = "loop that calls a recurrent cell for every time step"

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._known: weakref.WeakKeyDictionary[Any, tuple[int, Fused]] = weakref.WeakKeyDictionary()
        """Of each cell a number of its own, and what takes its place."""
        self._num_known = 0
        self._kinds: dict[int, str] = {}

    def on_source(self, path: str, tree: Any, names: dict[str, Any]) -> bool:
        """Put the one call before each loop that it may replace."""
        loops, left = time_loops(tree)
        names[CALL] = self.all_steps
        return self._put(path, loops, left, put_before)

    def all_steps(self, site: int, over: Any, dim: int, num: Any, cells: Sequence[Told]) -> Steps | None:
        """Return what all steps of a loop give; None: the loop is to run."""
        made: Steps | None = self._instead(site, lambda: self._made(site, over, dim, num, cells))
        return made

    def _made(self, site: int, over: Any, dim: int, num: Any, cells: Sequence[Told]) -> Steps | None:
        rows = _rows(over, dim, num)
        if rows is None:
            return None
        with _own_random_numbers(rows):
            ways = [self._way(each) for each in cells]

        def prove() -> None:
            with _own_random_numbers(rows):
                self._prove(rows, cells, ways)

        key = (site, *_circumstances(rows, cells), *(self._known[each[0]][0] for each in cells))
        if not self._is_proven(key, prove):
            return None
        self._kinds[site] = ", ".join(dict.fromkeys(each.kind for each in ways))
        return _in_one_call(rows, cells, ways)

    def _how(self, site: int) -> str:
        return f" ({self._kinds[site]})"

    def _way(self, told: Told) -> Fused:
        cell, _, states, reads_first = told
        _require_plain(cell)
        if len(states) == 1 and isinstance(states[0], tuple) and len(states[0]) == 2 and not reads_first:
            raise NotThis("more of its state than state[0] is read in the loop")
        if cell not in self._known:
            self._num_known += 1
            self._known[cell] = self._num_known, fused(cell)
        return self._known[cell][1]

    def _prove(self, rows: Any, cells: Sequence[Told], ways: Sequence[Fused]) -> None:
        """See whether one call gives the values and gradients that the steps give one by one.

        Raises:
            NotThis: it does not.
        """
        import torch

        def in_one_call(rows: Any, cells: Sequence[Told]) -> Steps:
            return _in_one_call(rows, cells, ways)

        learns, device = torch.is_grad_enabled(), rows.device.type
        coarse = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        if coarse is not None:  # in full first: half precision would hide a wrong gate
            dtype = ways[0].weights(cells[0][0])[0].dtype
            full = map_tensors((rows, tuple(cells)), lambda one: one.to(dtype))
            with torch.autocast(device, enabled=False):
                self._compare(in_one_call, *full, learns=learns, coarse=None)
        self._compare(in_one_call, rows, cells, learns=learns, coarse=coarse)

    def _compare(self, make: Make, rows: Any, cells: Sequence[Told], *, learns: bool, coarse: Any) -> None:
        alone, own = _values_and_gradients(_one_by_one, rows, cells, learns=learns)
        together, other = _values_and_gradients(make, rows, cells, learns=learns)
        self._differences.append(require_same("results", alone, together, coarse))
        self._differences.append(require_same("gradients", own, other, coarse))


def _rows(over: Any, dim: int, num: Any) -> Any:
    """Return the steps: time, batch, features; None: there are too few to be worth it.

    Raises:
        NotThis: it is no batch of sequences.
    """
    import torch

    if (
        not isinstance(over, torch.Tensor)
        or over.dim() != 3
        or not over.is_floating_point()
        or over.is_sparse
    ):
        raise NotThis(f"it goes over a {type(over).__name__}, not a batch of sequences")
    if num is not None and (not isinstance(num, int) or num > over.shape[dim]):
        raise NotThis("it counts further than there are steps")
    steps = over.transpose(0, dim) if dim else over
    steps = steps if num is None else steps[:num]
    return steps if len(steps) > 1 else None


def _own_random_numbers(rows: Any) -> AbstractContextManager[None]:
    """What a cell draws while it is looked at is not the program's to miss."""
    import torch

    return torch.random.fork_rng([rows.device] if rows.is_cuda else [])  # type: ignore[no-any-return]


def _circumstances(rows: Any, cells: Sequence[Told]) -> tuple[Any, ...]:
    """Return what a proof holds for."""
    import torch

    amp = torch.is_autocast_enabled(rows.device.type)
    training = tuple(cell.training for cell, *_ in cells)
    return rows.dtype, rows.device, amp, torch.is_grad_enabled(), training


def _require_plain(cell: Any) -> None:
    """Nobody may listen to a cell's calls: there would be none.

    Raises:
        NotThis: somebody does.
    """
    import torch

    if not isinstance(cell, torch.nn.Module):
        raise NotThis(f"what it calls is a {type(cell).__name__}, no cell")
    if any(vars(module).get(name) for module in cell.modules() for name in _HOOKS):
        raise NotThis(f"there are hooks on its {type(cell).__name__}")


def _in_one_call(rows: Any, cells: Sequence[Told], ways: Sequence[Fused]) -> Steps:
    """Return a tensor of its own for each step, which the program may change; the last is that of the final state."""
    import torch

    made = Steps()
    outputs: list[Any] = []
    for (cell, given, states, _), way in zip(cells, ways, strict=True):
        steps = rows if given == ROW else outputs[given]
        own = _flat(states)
        if own == [None]:
            own = [_zeros(steps, way.weights(cell))] * (2 if way.kind == "lstm" else 1)
        if len(own) != (2 if way.kind == "lstm" else 1) or any(each.dim() != 2 for each in own):
            raise NotThis("its state is not that of a batch")
        all_steps, last = way.run(cell, steps, own)
        outputs.append(all_steps)
        single = torch.unbind_copy(all_steps)
        is_pair = len(last) == 2
        made.append(Made(single, (single[-1], last[1]) if is_pair else single[-1], is_pair))
    return made


def _zeros(steps: Any, weights: Sequence[Any]) -> Any:
    return steps.new_zeros(steps.shape[1], weights[1].shape[1])


def _one_by_one(rows: Any, cells: Sequence[Told]) -> Steps:
    """Return what the loop's own cells give."""
    states = [list(each[2]) for each in cells]
    outputs: list[list[Any]] = [[] for _ in cells]
    for row in rows.unbind(0):
        for at, (cell, given, began, _) in enumerate(cells):
            made = cell(row if given == ROW else outputs[given][-1], *states[at])
            states[at] = list(made) if len(began) > 1 else [made]
            outputs[at].append(made[0] if isinstance(made, tuple) else made)
    made_all = Steps()
    for (_, _, began, _), state, output in zip(cells, states, outputs, strict=True):
        final = tuple(state) if len(began) > 1 else state[0]
        made_all.append(Made(output, final, isinstance(final, tuple)))
    return made_all


def _values_and_gradients(
    make: Make, rows: Any, cells: Sequence[Told], *, learns: bool
) -> tuple[list[Any], Sequence[Any]]:
    """Return what a way to make the steps gives, and the gradients of all that it is given and has learned."""
    import torch

    leaves: list[Any] = []
    own_rows = _leaf(rows, leaves, learns=learns)
    own_cells = [
        (cell, given, tuple(_leaves(each, leaves, learns=learns) for each in states), first)
        for cell, given, states, first in cells
    ]
    made = [each for one in make(own_rows, own_cells) for each in (*one.outputs, *_flat(one.final))]
    if not learns:
        return made, ()
    learned = [p for cell, *_ in cells for p in cell.parameters() if p.requires_grad]
    weights = [along(each, at) for at, each in enumerate(made)]
    return made, torch.autograd.grad(made, [*leaves, *learned], weights, allow_unused=True)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [inner for each in value for inner in _flat(each)]
    return [value]


def _leaves(value: Any, leaves: list[Any], *, learns: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_leaves(each, leaves, learns=learns) for each in value)
    return value if value is None else _leaf(value, leaves, learns=learns)


def _leaf(tensor: Any, leaves: list[Any], *, learns: bool) -> Any:
    copied = tensor.detach().clone().requires_grad_(learns)
    if learns:
        leaves.append(copied)
    return copied
