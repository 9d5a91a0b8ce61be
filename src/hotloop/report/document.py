"""A report as blocks: what every rendering walks."""

from __future__ import annotations

from typing import Any

import msgspec


class Facts(msgspec.Struct, frozen=True, tag="facts"):
    """Words and what is said of each."""

    rows: tuple[tuple[str, str], ...]


class Table(msgspec.Struct, frozen=True, tag="table"):
    """Rows under a header; figures are right-aligned."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    figures: tuple[int, ...] = ()
    """Columns that hold figures, counted from 0."""
    bars: tuple[float, ...] = ()
    """Length of a bar beside each row, in any unit; empty: no bars."""
    hues: tuple[str, ...] = ()
    """Colour of each bar: the name of a phase, or empty for the usual one."""


class Chart(msgspec.Struct, frozen=True, tag="chart", kw_only=True):
    """A picture; `table` holds the figures for who cannot see it, and is what Markdown shows."""

    kind: str
    """Names the function of `html/drawing` that draws it."""
    title: str
    summary: str
    """What it shows, in a sentence with the main figures."""
    data: dict[str, Any]
    table: Table | None = None
    rule: str = ""
    """How data was thinned out for drawing; empty: all of it is drawn."""


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Text to be shown as it is."""

    text: str
    language: str = ""
    first: int | None = None
    """Number of the first line; None: lines are not numbered."""
    marked: int | None = None
    """Number of the line that is meant."""


class Note(msgspec.Struct, frozen=True, tag="note"):
    """A sentence."""

    text: str
    tone: str = ""
    """`warning`, `strong` or `dim`; empty: plain."""


class More(msgspec.Struct, frozen=True, tag="more"):
    """Blocks that short renderings leave out; the page shows them in their place."""

    blocks: tuple[Block, ...]
    instead: tuple[Block, ...] = ()
    """What stands in for them in a short rendering."""


class Details(msgspec.Struct, frozen=True, tag="details"):
    """Blocks behind a click."""

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    """What links lead to it by."""
    badge: str = ""
    """A word that says how loud or how good it is."""
    links: tuple[tuple[str, str], ...] = ()
    """Words and the anchors they lead to."""
    name: str = ""
    """What `hotloop explain` knows it by."""
    open: bool = False
    """Its blocks are seen without a click, and in short renderings."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the report under a heading."""

    anchor: str
    title: str
    lead: str = ""
    """What it says, in a sentence."""
    blocks: tuple[Block, ...]


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One figure at the top."""

    name: str
    value: str
    detail: str = ""
    good: bool | None = None
    """None: neither good nor bad."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report."""

    title: str
    subtitle: str
    verdict: str
    good: bool | None
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    footer: str
    warnings: tuple[str, ...] = ()
    """What has to be known before anything else is believed."""


Block = Facts | Table | Chart | Code | Note | More | Details
