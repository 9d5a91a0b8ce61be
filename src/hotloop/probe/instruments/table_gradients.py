"""Dense gradients of embedding tables: which look-ups made them, and what they are added to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.probe.instruments.value_numbers import tensors_in

_INTO = frozenset({"add_", "copy_"})
"""What a pass does to the gradient that a parameter has: the first argument is that."""


@dataclass
class TableGradient:
    """The gradient of a table, from one look-up.

    Attributes:
        node: the number of the look-up's graph node.
        num_rows: of the table.
        width: of a row.
        used: rows that were looked up.
        spent_ns: how long it took to make, and to add to other gradients of its kind.
        tied: something else than a look-up has a gradient for the table, and that is dense whatever look-ups do.
    """

    node: int
    num_rows: int
    width: int
    used: int
    spent_ns: int
    tied: bool = False


class TableGradients:
    """Follows gradients of tables through the sums of a backward pass.

    Args:
        storage: returns the number of a tensor's memory, which no other tensor gets.
    """

    def __init__(self, storage: Callable[[Any], int]) -> None:
        self.made: list[TableGradient] = []
        self._storage = storage
        self._held: dict[int, list[TableGradient]] = {}
        """By memory: gradients that were added up there."""

    def note(self, name: str, args: Any, out: Any, node: int, spent_ns: int, *, accumulates: bool) -> None:
        """Note an operation of a backward pass.

        Args:
            name: of the operation.
            args: of it.
            out: its result.
            node: the number of the node that runs.
            spent_ns: how long it took.
            accumulates: the node adds to the gradient that a parameter has.
        """
        if name == "embedding_dense_backward":
            used = int(args[1].unique().numel())
            made = TableGradient(node, int(args[2]), int(out.shape[-1]), used, spent_ns)
            self.made.append(made)
            self._held[self._storage(out)] = [made]
        elif self._held:
            known = [self._held.get(self._storage(each)) for each in tensors_in(args)]
            self._note_sum(name, known, out, spent_ns, accumulates=accumulates)

    def _note_sum(
        self,
        name: str,
        known: list[list[TableGradient] | None],
        out: Any,
        spent_ns: int,
        *,
        accumulates: bool,
    ) -> None:
        parts = [each for terms in known if terms is not None for each in terms]
        incoming = known[1:] if accumulates and name in _INTO else known
        if not parts or name not in ("add", *_INTO):
            return
        if None in incoming:
            for each in parts:
                each.tied = True
            return
        for each in parts:
            each.spent_ns += spent_ns // len(parts)
        self._held[self._storage(out)] = parts
