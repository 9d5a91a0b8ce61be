"""What an optimization says of its effect: what it did, and what it left as it was, in one line."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 3
"""Reasons of what was left; a program may have hundreds of loops."""


def evidence(done: str, left: Iterable[str] = (), nothing: str = "") -> str:
    """Return what was done, then why other places were left.

    Args:
        done: empty: nothing was.
        left: why, place by place.
        nothing: what is said where nothing was done and nothing was left.
    """
    reasons = list(dict.fromkeys(left))
    more = len(reasons) - SHOWN
    shown = [f"left: {reason}" for reason in reasons[:SHOWN]]
    rest = [f"and {more} more places left"] if more > 0 else []
    return "; ".join([*([done] if done else []), *shown, *rest]) or nothing
