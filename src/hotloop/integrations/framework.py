"""What each framework says of itself: the class whose keywords are its knobs, and which of them a step turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Keywords = Callable[[Mapping[str, Any]], dict[str, str]]
"""The parameters of a step to keywords, each value as Python."""


@dataclass(frozen=True)
class Framework:
    """One framework.

    Attributes:
        name: as people know it.
        classes: qualified names of the class that takes the knobs, as programs import it.
        knobs: name of an optimization to the keywords that do the same.
        parsers: functions that make such an object from the command line; the keywords are then its options.
    """

    name: str
    classes: frozenset[str]
    knobs: Mapping[str, Keywords]
    parsers: frozenset[str] = field(default_factory=frozenset)
