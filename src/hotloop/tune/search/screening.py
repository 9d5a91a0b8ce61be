"""Knobs switched together in one process, once, and what that tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hotloop.stats.switching import SwitchFit
from hotloop.tune.design.experiment import Design
from hotloop.tune.executor import SwitchOrder, SwitchRecord
from hotloop.tune.search.actions import Screen
from hotloop.tune.search.evidence import Evidence, Screened
from hotloop.tune.search.knob_screen import KnobScreen, switch_order
from hotloop.tune.session.ledger import Ledger


class ScreenResult(NamedTuple):
    """What a process gave whose knobs were switched."""

    order: SwitchOrder
    record: SwitchRecord
    fit: SwitchFit | None
    evidence: tuple[Evidence, ...]


class Screening:
    """Screens knobs.

    Args:
        ledger: keeps the records.
        screen: switches.
        design: what the experiment is designed from.
    """

    def __init__(self, ledger: Ledger, screen: KnobScreen, design: Design) -> None:
        self._ledger = ledger
        self.screen = screen
        self._design = design
        self.fits: list[SwitchFit] = []

    def run(self, key: str, action: Screen, enough: Callable[[SwitchFit, int], bool]) -> ScreenResult:
        """Switch knobs until enough is known.

        Args:
            key: of the process.
            action: the knobs, and what is on all the time.
            enough: whether more holds are not worth their time.
        """
        order = switch_order(
            action.knobs,
            self._design.conflicts,
            action.limit_s,
            base=action.base,
            passive=action.passive,
            buffered=self._design.buffered(action.base),
        )
        record = self._ledger.once(key, SwitchRecord, lambda: self.screen.run(order, enough))
        fit = self.screen.fit(record, order)
        if fit is None:
            return ScreenResult(order, record, None, ())
        self.fits.append(fit)
        base = frozenset(step.label for step in action.base)
        return ScreenResult(order, record, fit, (Screened(fit=fit, base=base, passive=action.passive),))
