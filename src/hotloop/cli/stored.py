"""Sessions as commands store them: what was measured, and of what."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.tuning import TuneResult
from hotloop.observe.coverage import NoStepError
from hotloop.observe.run.origin import ORIGIN
from hotloop.report.cleaned import cleaned
from hotloop.report.sections.out_of_memory import out_of_memory_alone
from hotloop.report.terminal import walk
from hotloop.report.terminal.screen import Screen
from hotloop.store.session import Session, check_storable, find_session, new_session, sessions

OBSERVATION = "observation"
"""Under which `tune` keeps what it observed, too."""
RESULT = "result"
"""Under which `tune` keeps what it found."""


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


def store_observation(observation: Observation, of: Origin) -> str:
    """Store an observation in a session of its own; return the session's id.

    Raises:
        HotloopError: it cannot be written.
    """
    session = new_session(Path.cwd(), datetime.now().strftime("%Y%m%d-%H%M%S"))
    try:
        session.put(ORIGIN, of)
        session.put(OBSERVATION, observation)
        return session.name
    finally:
        session.close()


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


def session_with_result(base: Path, name: str | None = None) -> Session:
    """Open the session named, or else the newest in which something was measured.

    A run that failed early leaves a session, too, in which nothing was measured; where there are only such ones it is
    the newest of them. Damaged ones are passed over.

    Raises:
        HotloopError: there is none, or the one named cannot be read.
    """
    if name is not None:
        return find_session(base, name)
    for path in sessions(base):
        try:
            session = Session(path)
        except HotloopError:
            continue
        if _measured(session):
            return session
        session.close()
    return find_session(base)


def _measured(session: Session) -> bool:
    try:
        seen = session.get(OBSERVATION, Observation)
        if session.get(RESULT, TuneResult) is not None:
            return True
    except HotloopError:
        return False
    known = seen is not None and (seen.step is not None or seen.deep is not None)
    return known or (seen is not None and seen.out_of_memory is not None)
