"""Where a session comes from: written into it as it begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from hotloop import __version__
from hotloop.launch.command import resolve
from hotloop.machine.environment.code_state import code_state
from hotloop.machine.environment.command_packages import packages_of
from hotloop.model.errors import HotloopError
from hotloop.model.machine import EnvironmentCheck
from hotloop.model.origin import Origin
from hotloop.model.secrets import redacted_words

ORIGIN = "origin"
"""Under which every session says what it is of."""


def origin(
    kind: str, words: Sequence[str], checks: tuple[EnvironmentCheck, ...] = (), *, runs: bool = True
) -> Origin:
    """Return what a session that begins here and now is of.

    Args:
        kind: of the command.
        words: of the program's command.
        checks: of the environment, before it.
        runs: the session runs the command; a process that somebody else started is not asked for its packages.
    """
    folder = Path.cwd()
    return Origin(
        kind=kind,
        words=redacted_words(words),
        folder=str(folder),
        began=datetime.now().astimezone().isoformat(timespec="seconds"),
        hotloop_version=__version__,
        code=code_state(folder),
        packages=_packages(words, folder) if runs else {},
        checks=checks,
    )


def _packages(words: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the packages of the command's own Python; none where that is not known."""
    try:
        return packages_of(resolve(words), folder) or {}
    except HotloopError:
        return {}
