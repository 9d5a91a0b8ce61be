"""What makes types looks at its caller, to say which module they are of; in a forward and a data set too."""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from program import Found, Plain, Rows, train_plain
from torch import nn
from torch.utils.data import DataLoader

MADE: dict[str, list[str]] = {}


def marks(cls: type) -> type:
    """Decorate as attrs-like libraries do: with the names of who decorates."""
    frame = sys._getframe(1)
    cls.made_in = (frame.f_globals["__name__"], frame.f_code.co_name)  # type: ignore[attr-defined]
    return cls


def make(where: str) -> None:
    @marks
    @dataclasses.dataclass
    class Row:
        value: int = 0

    class Pair(NamedTuple):
        value: int = 0

    class Color(enum.Enum):
        RED = 1

    made = (Row, Pair, Color, collections.namedtuple("Point", "x"), enum.Enum("Shape", "ROUND"))
    MADE[where] = [*(each.__module__ for each in made), TypeVar("Kind").__module__, str(Row.made_in)]  # type: ignore[attr-defined, misc]


class Making(Plain):
    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        make("forward")
        return super().forward(pixels)


class MakingRows(Rows):
    def __getitem__(self, index: int) -> Any:
        make("getitem")
        return super().__getitem__(index)


def read() -> Found:
    calls: list[Callable[[], Any]] = [
        lambda: train_plain(Making(), lambda: make("between")),
        lambda: next(iter(DataLoader(MakingRows(), batch_size=4))),
        lambda: make("alone"),
    ]
    for call in calls:
        call()
    return [MADE, issubclass(Making, nn.Module)], None
