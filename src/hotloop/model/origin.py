"""What a session is of: the command, the code it ran, and when."""

from __future__ import annotations

import msgspec

from hotloop.model.machine import EnvironmentCheck


class CodeState(msgspec.Struct, frozen=True, kw_only=True):
    """The user's repository when a session began."""

    commit: str
    branch: str | None
    """None: no branch is checked out."""
    changed: tuple[str, ...] = ()
    """Files that differ from the commit, relative to the repository."""
    diff_sha256: str | None = None
    """Of those differences; None: there are none."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session comes from."""

    kind: str
    """`observe`, `diagnose`, `tune`, or `run` where it ran out of memory."""
    words: tuple[str, ...]
    folder: str
    began: str
    """ISO 8601 with the zone."""
    hotloop_version: str
    code: CodeState | None = None
    """None: the folder is in no Git repository."""
    packages: dict[str, str] = {}
    """Distributions that the command's own Python finds installed, and their versions; empty: it is not known."""
    checks: tuple[EnvironmentCheck, ...] = ()
    """What could have spoiled the measurement, as it was before it; empty: of an earlier version."""
