"""A report on the terminal: in short, or whole."""

from __future__ import annotations

import msgspec
from rich.console import RenderableType

from hotloop.report.document import Block, Chart, Details, Document, Section, Table
from hotloop.report.terminal import walk
from hotloop.report.terminal.layout import next_steps

SHOWN = ("plan", "step", "findings", "parity", "changes")
"""Sections of which the lead is shown, with the first table and the titles of details."""
WHOLE = "out-of-memory"
"""Section that is shown whole: who looks for it has no other."""


def render(document: Document, *, verbose: bool = False) -> RenderableType:
    """Return the report, ready to print.

    Args:
        document: what to show.
        verbose: all of it, as on the page.
    """
    return walk.render(document if verbose else _in_short(document), verbose=verbose)


def render_next(session: str) -> RenderableType:
    """Return what to type next."""
    return next_steps(
        [
            (
                "as a page with charts",
                ["hotloop", "report", session, "--html", "report.html"],
            ),
            ("for a pull request", ["hotloop", "report", session, "--markdown", "-", "--brief"]),
        ]
    )


def _in_short(document: Document) -> Document:
    shown = tuple(
        one if one.anchor == WHOLE else _section(one)
        for one in document.sections
        if one.anchor in (WHOLE, *SHOWN)
    )
    return msgspec.structs.replace(document, sections=shown)


def _section(section: Section) -> Section:
    """Return its lead, the figures of its first chart or table, and the titles of details."""
    tables: list[Block] = [one for one in section.blocks if isinstance(one, (Chart, Table))]
    details = [msgspec.structs.replace(one, open=False) for one in section.blocks if isinstance(one, Details)]
    return msgspec.structs.replace(section, blocks=(*tables[:1], *details))
