"""What of a backward pass is the price of a table's dense gradient."""

from __future__ import annotations

from typing import Any

import torch

from hotloop.probe.instruments.table_gradients import TableGradients
from hotloop.probe.instruments.value_numbers import ValueNumbers


class Pass:
    """A backward pass, each of whose operations takes a thousand nanoseconds."""

    def __init__(self) -> None:
        self.tables = TableGradients(ValueNumbers().storage)

    def does(self, name: str, *args: Any, accumulates: bool = False) -> torch.Tensor:
        """Do an operation whose result has the table's shape."""
        out = args[0] if name.endswith("_") else torch.zeros(50, 4)
        self.tables.note(name, args, out, 1, 1000, accumulates=accumulates)
        return out

    def look_up(self) -> torch.Tensor:
        """Make the gradient of a look-up."""
        return self.does("embedding_dense_backward", torch.zeros(2, 4), torch.tensor([1, 2]), 50)


def test_another_weights_gradient_of_the_same_shape_is_not_the_tables() -> None:
    seen = Pass()
    seen.look_up()
    head = seen.does("mm", torch.zeros(50, 6), torch.zeros(6, 4))
    seen.does("add_", torch.zeros(50, 4), head, accumulates=True)
    (one,) = seen.tables.made
    assert (one.spent_ns, one.tied) == (1000, False)


def test_what_adds_gradients_of_look_ups_up_is_part_of_their_price() -> None:
    seen = Pass()
    both = seen.does("add", seen.look_up(), seen.look_up())
    seen.does("add_", torch.zeros(50, 4), both, accumulates=True)
    assert sum(one.spent_ns for one in seen.tables.made) == 4000
    assert not any(one.tied for one in seen.tables.made)


def test_a_table_with_another_use_is_tied() -> None:
    seen = Pass()
    seen.does("add", seen.look_up(), torch.zeros(50, 4))
    kept = torch.zeros(50, 4)
    seen.does("add_", kept, seen.look_up(), accumulates=True)  # a pass of its own for each use
    seen.does("add_", kept, torch.zeros(50, 4), accumulates=True)
    assert [one.tied for one in seen.tables.made] == [True, True]
