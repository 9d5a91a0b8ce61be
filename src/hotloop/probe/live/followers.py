"""Put the followers that the orders name behind a recorder that keeps nothing itself."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hotloop.probe.record.recorder import Follower

if TYPE_CHECKING:
    from hotloop.probe.probe import Probe


def install(probe: Probe) -> None:
    """Let all of them see each event; one that cannot be made is said on standard error, and the program goes on."""
    made = []
    for order in probe.config.followers:
        try:
            module = importlib.import_module(order["module"])
            made.append(module.follower(**order.get("params", {})))
        except Exception as error:  # what the user asked for beside the run must not end it
            sys.stderr.write(f"hotloop: the run goes on without {order['name']}: {str(error)!r}\n")
    if made:
        probe.recorder.follow(_All(made))


class _All:
    """Several followers as one."""

    def __init__(self, followers: Sequence[Any]) -> None:
        self._followers: Sequence[Follower] = followers

    def keep(self, event: int) -> None:
        for each in self._followers:
            each.keep(event)

    def flush(self) -> None:
        for each in self._followers:
            each.flush()
