"""What goes on, and what happens in passing while it does."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

MOST = 48
"""Characters of what goes on beside what happens in passing: half of a line."""


class Stage:
    """Tells both, so that what happens in passing never stands there as if it were all that goes on.

    Args:
        say: shows a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._text = ""

    def begin(self, text: str) -> None:
        """Say what goes on from now on."""
        self._text = text
        self._say(text)

    def passing(self, text: str) -> None:
        """Say what happens meanwhile; it comes first, for narrow terminals cut the end. Lists are not told again."""
        of = textwrap.shorten(self._text.partition(": ")[0], MOST, placeholder=" ...")
        self._say(f"{text}, {of}" if of else text)
