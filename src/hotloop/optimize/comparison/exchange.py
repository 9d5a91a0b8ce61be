"""One exchange that can be made in a living model, and made undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Exchange(ABC):
    """Another way to compute a part of a model.

    Attributes:
        place: what and where it is, for people.
        modules: those of the model that it is in.
        num_calls: how often the other way was taken, as far as it is counted.
        counts: it counts its calls; else it is known to be reached.
        keeps_gradients: the other way can be differentiated by the same parameters; else outputs alone are compared.
    """

    keeps_gradients: bool = True
    counts: bool = True

    def __init__(self, place: str) -> None:
        self.place = place
        self.modules: list[Any] = []
        self.num_calls = 0

    @abstractmethod
    def put(self, on: bool) -> None:
        """Take the other way, or the program's own again."""
