"""The stored sessions as a table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.quantities import byte_size, counted
from hotloop.report.terminal.layout import facts, next_steps


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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("session", "when", "what", "verdict", "size"):
        table.add_column(head, justify="right" if head == "size" else "left", overflow="fold")
    for one in found:
        cells = (
            shown(one.name),
            one.when,
            one.kind or "unknown",
            shown(one.verdict),
            byte_size(one.size_bytes),
        )
        table.add_row(*map(Text, cells))
    commands = facts(
        ((shown(one.name), shown(one.command or "")) for one in found),
        key_width=max(len(shown(one.name)) for one in found),
    )
    total = byte_size(sum(one.size_bytes for one in found))
    return Group(
        table,
        Text(f"{counted(len(found), 'session')}, {total}\n"),
        Text("command", style="dim"),
        commands,
        next_steps([("show one", ["hotloop", "report", found[0].name])]),
    )
