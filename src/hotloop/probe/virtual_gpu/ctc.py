"""The CTC loss, whose lengths decide over shapes."""

from __future__ import annotations

import functools
from typing import Any

import torch


def give_ctc_its_lengths() -> None:
    """Give the loss its lengths as numbers, as torch itself does for tensors that are no subclass.

    For a subclass it computes with the lengths as tensors, which it then does not move to the device.
    """
    whole: Any = torch
    original = whole.ctc_loss

    @functools.wraps(original)
    def ctc_loss(scores: Any, targets: Any, *rest: Any, **named: Any) -> Any:
        rest = tuple(map(_as_numbers, rest))
        return original(scores, targets, *rest, **{name: _as_numbers(each) for name, each in named.items()})

    whole.ctc_loss = ctc_loss


def _as_numbers(each: Any) -> Any:
    return each.tolist() if isinstance(each, torch.Tensor) else each
