"""Whether code asks for the time or for the system's random numbers: a sample that may depend on them is not kept."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

_MODULES = ("time",)
_NAMES = frozenset(
    {"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "urandom", "getrandom"}
)


def asks_for_time(run: Callable[[], Any]) -> str | None:
    """Run something and return the first clock or entropy source that it called, None where it called none.

    Uses the interpreter's profile hook for as long as it runs, and puts back whatever was set. Garbage is not collected
    meanwhile: what others do at a collection (hypothesis times it) is none of its calls.
    """
    seen: list[str] = []

    def watch(_: Any, event: str, function: Any) -> None:
        if event == "c_call" and not seen:
            name = getattr(function, "__qualname__", "")
            module = getattr(function, "__module__", None)
            if (module in _MODULES and name != "sleep") or name in _NAMES:
                seen.append(f"{module}.{name}" if module else name)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return seen[0] if seen else None
