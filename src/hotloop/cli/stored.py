"""Stores what commands measure, and says where that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.observe.coverage import NoStepError
from hotloop.report.sanitize import cleaned
from hotloop.report.sections.out_of_memory import out_of_memory_alone
from hotloop.report.terminal import walk
from hotloop.report.terminal.screen import Screen
from hotloop.review.stored import store_observation
from hotloop.store.session import check_storable


@contextlib.contextmanager
def stored_without_step(of: Origin, screen: Screen) -> Iterator[None]:
    """Store what was seen of a run that took no step, for `diagnose` and `report` to say why.

    Where it ran out of memory, what held the memory is shown.
    """
    try:
        yield
    except NoStepError as why:
        # What the user is told is why there is no step, not that it could not be kept.
        with contextlib.suppress(HotloopError):
            store_observation(why.observation, of)
        show_out_of_memory(screen, why.observation)
        raise


def show_out_of_memory(screen: Screen, observation: Observation) -> None:
    """Show what held the memory, where the program ran out of it."""
    shown = out_of_memory_alone(observation)
    if shown is not None:
        screen.done()
        screen.show(walk.render(cleaned(shown), verbose=True))


def warn_unless_storable(screen: Screen) -> None:
    """Say before the program runs that what is measured cannot be stored here."""
    try:
        check_storable(Path.cwd())
    except HotloopError as error:
        screen.alert(f"hotloop: {error.message}; the result will be shown, and not stored")
        screen.alert(f"  {error.hint}")


def stored_or_told(screen: Screen, observation: Observation, of: Origin) -> str | None:
    """Store an observation as `store_observation` does; None: it cannot be, which is said: the result is shown."""
    try:
        return store_observation(observation, of)
    except HotloopError as error:
        screen.done()
        screen.alert(f"hotloop: this run is not stored: {error.message}")
        screen.alert(f"  {error.hint}")
        return None
