"""The torch call that computes all time steps of a cell."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.catalogue.compute.fused_recurrence.one_call import Fused, Weights
from hotloop.optimize.catalogue.compute.fused_recurrence.user_cells import told_by_values
from hotloop.patterns.refusal import NotThis

KINDS = {"LSTMCell": "lstm", "GRUCell": "gru"}


def fused(cell: Any) -> Fused:
    """Return torch's one call for a cell.

    Raises:
        NotThis: it computes something else than an LSTM, a GRU or an RNN of torch's.
    """
    from torch import nn

    if type(cell) in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        kind = KINDS.get(type(cell).__name__) or f"rnn_{cell.nonlinearity}"
        return Fused(kind, _own)
    if isinstance(cell, nn.Module) and not type(cell).__module__.startswith("torch."):
        return told_by_values(cell)
    raise NotThis(f"{type(cell).__name__} is no recurrent cell that torch has one call for")


def _own(cell: Any) -> Weights:
    own = [cell.weight_ih, cell.weight_hh]
    return [*own, cell.bias_ih, cell.bias_hh] if cell.bias else own
