"""The folder whose sessions are meant by a command that is typed below it."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop.store.session import FOLDER, Session, sessions


def folder_of_sessions(start: Path) -> Path:
    """Return the nearest folder with sessions, from one upwards; the one itself where there are none.

    Only folders of the same owner are looked into: what somebody else stored above is not meant.
    """
    owner = os.getuid() if hasattr(os, "getuid") else None
    for folder in (start, *start.absolute().parents):
        try:
            if owner is not None and (folder / FOLDER).lstat().st_uid != owner:
                continue
        except OSError:  # there is none
            continue
        if sessions(folder):
            return folder
    return start


def folder_of(session: Session) -> Path:
    """Return the folder that a session was made in, which its paths are relative to."""
    place = session.path.absolute().parent
    return place.parent if place.name == FOLDER else Path.cwd()
