"""How far an edit of the user's source can be trusted."""

from __future__ import annotations

from enum import IntEnum


class Safety(IntEnum):
    """Whether an edit is written; a lower value is safer."""

    SAFE = 0
    """The program does what it did: with the plan switched on from outside, or before a fix of `lint`."""
    UNSAFE = 1
    """Numbers, saved files or behaviour that was not observed may change; written only with `--unsafe`."""
    DISPLAY = 2
    """Only shown: a person has to decide, where a framework is set up in several places."""
