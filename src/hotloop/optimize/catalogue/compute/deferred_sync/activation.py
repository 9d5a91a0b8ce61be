"""The activation of deferred_sync: statements that only log or add up run a step later."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hotloop.optimize.catalogue.compute.deferred_sync.pending_values import Counts, Later, Way, sent
from hotloop.optimize.catalogue.compute.deferred_sync.source_edit import MAKE, defer
from hotloop.optimize.evidence import evidence
from hotloop.probe.activation.knob import Knob


class LaterValues(Knob):
    """Lets values come while the device goes on.

    Args:
        at_once: from the start; else when it is switched.
        send: see `Later`.
    """

    settle_steps = 1

    def __init__(self, *, at_once: bool, send: Callable[[Any], Way | None] = sent) -> None:
        self._is_on = at_once
        self._send = send
        self._counts = Counts()
        self._lines: list[str] = []
        self._kept: list[str] = []

    def on_source(self, path: str, tree: Any, names: dict[str, Any]) -> bool:
        """Change the loops in which something can wait."""
        plans = defer(tree)
        short = os.path.basename(path)
        for plan in plans:
            self._lines += [f"{short}:{each.statement.lineno}" for each in plan.waiting]
            self._kept += [f"{short}:{line}: {reason}" for line, reason in plan.kept.items()]
        names[MAKE] = self.queue
        return any(plan.waiting for plan in plans)

    def queue(self, over: Any = None) -> Later:
        """Return the queue of a loop that is about to begin, over something that may have a length."""
        try:
            num_turns = len(over) if over is not None else None
        except Exception:  # whatever the program's own class does when it is asked
            num_turns = None
        return Later(self._sent, self._counts, num_turns)

    def _sent(self, tensor: Any) -> Way | None:
        return self._send(tensor) if self._is_on else None

    def switch(self, on: bool) -> None:
        """Let values come later, or ask for them at once again."""
        self._is_on = on

    def effect(self) -> tuple[bool, str]:
        """Return whether values came later, and at which lines."""
        if not self._lines:
            return False, evidence("", self._kept, "no statement that only logs or adds up a value was read")
        at_once = "; ".join(sorted(self._counts.reasons))
        said = f"{self._counts.num_later} values were given a step later to {', '.join(dict.fromkeys(self._lines))}"
        said += f"; at once: {at_once}" if at_once else ""
        return self._counts.num_later > 0, evidence(said, self._kept)
