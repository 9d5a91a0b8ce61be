"""Sessions as commands store them: what was measured, and of what."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hotloop.model.errors import HotloopError
from hotloop.model.observation import Observation
from hotloop.model.origin import Origin
from hotloop.observe.coverage import NoStepError
from hotloop.observe.run.origin import ORIGIN
from hotloop.store.session import new_session

OBSERVATION = "observation"
"""Under which `tune` keeps what it observed, too."""
RESULT = "result"
"""Under which `tune` keeps what it found."""


@contextlib.contextmanager
def stored_without_step(of: Origin) -> Iterator[None]:
    """Store what was seen of a run that took no step, for `diagnose` and `report` to say why."""
    try:
        yield
    except NoStepError as why:
        # What the user is told is why there is no step, not that it could not be kept.
        with contextlib.suppress(HotloopError):
            store_observation(why.observation, of)
        raise


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
