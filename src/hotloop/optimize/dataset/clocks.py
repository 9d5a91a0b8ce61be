"""Whether code asks for the time or for the system's random numbers: a sample that may depend on them is not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.optimize.dataset.own_calls import own_calls

_MODULES = ("time",)
_NAMES = frozenset(
    {"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "urandom", "getrandom"}
)


def asks_for_time(run: Callable[[], Any]) -> str | None:
    """Run something and return the first clock or entropy source that it called, None where it called none."""
    seen: list[str] = []

    def watch(_: Any, event: str, function: Any) -> None:
        if event == "c_call" and not seen:
            name = getattr(function, "__qualname__", "")
            module = getattr(function, "__module__", None)
            if (module in _MODULES and name != "sleep") or name in _NAMES:
                seen.append(f"{module}.{name}" if module else name)

    with own_calls(watch):
        run()
    return seen[0] if seen else None
