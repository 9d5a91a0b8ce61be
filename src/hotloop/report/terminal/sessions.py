"""The stored sessions as a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.quantities import byte_size


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as a list shows it."""

    name: str
    when: str
    kind: str | None
    """`observe`, `diagnose` or `tune`; None: it cannot be read."""
    command: str | None
    verdict: str
    size_bytes: int


def render(found: Sequence[StoredSession]) -> RenderableType:
    """Return the list, the newest first."""
    if not found:
        return Text("no session is stored here; hotloop observe COMMAND makes one")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("session", "what", "verdict", "size"):
        table.add_column(head, justify="right" if head == "size" else "left", overflow="fold")
    for one in found:
        what = Text(one.kind or "unknown")
        what.append(f"\n{shown(one.command or '')}", style="dim")
        table.add_row(
            Text(f"{one.name}\n{one.when}"), what, Text(shown(one.verdict)), byte_size(one.size_bytes)
        )
    total = byte_size(sum(one.size_bytes for one in found))
    return Group(table, Text(f"{len(found)} session{'s' * (len(found) != 1)}, {total}"))
