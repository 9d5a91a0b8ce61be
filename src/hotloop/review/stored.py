"""Sessions by what they hold: an observation, or the result of a tuning session."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.model.tuning import TuneResult
from hotloop.observe.run.origin import ORIGIN
from hotloop.store.keys import OBSERVATION, RESULT
from hotloop.store.session import Session, find_session, new_session, sessions


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
