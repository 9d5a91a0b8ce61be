"""The stored sessions, with the verdict and the command of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hotloop.model.quantities import byte_size, counted
from hotloop.report.document import Block, Facts, Note


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as a list shows it."""

    name: str
    when: str
    """When it was last written to: tuning that goes on with an older session makes it the newest."""
    kind: str | None
    """`observe`, `diagnose` or `tune`; None: it cannot be read."""
    command: str | None
    verdict: str
    size_bytes: int


def stored_sessions(found: Sequence[StoredSession]) -> Iterator[Block]:
    """Yield the list in the order in which it is given, and its size."""
    if not found:
        yield Note("no session is stored here; hotloop observe COMMAND makes one")
        return
    yield Facts(tuple(row for one in found for row in _rows(one)))
    order = ", newest first" if len(found) > 1 else ""
    size = byte_size(sum(one.size_bytes for one in found))
    yield Note(f"{counted(len(found), 'session')}, {size}; times are of the last update{order}")


def _rows(one: StoredSession) -> Iterator[tuple[str, str]]:
    kind = f"{one.kind}: " if one.kind else ""
    yield one.name, f"{one.when}  {kind}{one.verdict}; {byte_size(one.size_bytes)}"
    if one.command:
        yield "", one.command
