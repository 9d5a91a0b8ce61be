"""Sessions as commands store them: what was measured, and of what."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.observe.run.origin import ORIGIN
from hotloop.store.session import new_session

OBSERVATION = "observation"
"""Under which `tune` keeps what it observed, too."""


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
