"""What the profilers saw, as tables at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.deep import CallSite, CallSites, Deep, HostLine, HostSamples
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted, duration, percent, plain

MAX_ROWS = 10
PLACE = 30
"""Columns for a file and its line."""
CALL = 18
FUNCTION = 24


def render_deep(deep: Deep) -> Iterator[RenderableType]:
    """Yield the tables."""
    if deep.call_sites is not None:
        yield from _call_sites(deep.call_sites)
    if deep.host is not None:
        yield from _host(deep.host)


def _call_sites(seen: CallSites) -> Iterator[RenderableType]:
    over = counted(seen.num_steps, "step")
    yield Text(f"\nsynchronizations, copies and new tensors, by line (over {over})", style="bold")
    shown = [site for site in seen.sites if site.kind == "sync"] + [
        site for site in seen.sites if site.kind != "sync" and not site.loading
    ]
    if not shown:
        yield Text(" none in these steps")
        return
    table = _table(("where", False), ("call", False), ("a step", True), ("time", True), ("kind", False))
    for site in shown[:MAX_ROWS]:
        table.add_row(
            _where(site),
            _shortened(site.call, CALL),
            f"{plain(site.count_per_step)}x",
            duration(site.time_per_step_s),
            _kind(site),
        )
    yield table
    yield from _more(shown)
    if not seen.functions_watched:
        yield Text(" methods of tensors alone: the program runs compiled code")


def _where(site: CallSite) -> str:
    """Return the line; where a library called for it, that library's line first."""
    if site.through is None:
        return place(site.path, site.line)
    return _shortened(f"{Path(site.through).name} for {Path(site.path).name}:{site.line}", PLACE)


def _kind(site: CallSite) -> str:
    return f"{site.kind} {site.device}" if site.device != "cpu" else site.kind


def _host(seen: HostSamples) -> Iterator[RenderableType]:
    num = sum(line.num for line in seen.lines)
    yield Text(f"\nwhere the host's time goes, by line ({counted(num, 'sample')})", style="bold")
    table = _table(("where", False), ("function", False), ("share", True), ("phase", False))
    for line in seen.lines[:MAX_ROWS]:
        table.add_row(
            place(line.path, line.line), _shortened(line.function, FUNCTION), percent(line.share), _of(line)
        )
    yield table
    yield from _more(seen.lines)


def _of(line: HostLine) -> str:
    return line.phase or {"worker": "loader worker", "thread": "other thread"}[line.process]


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for title, right in columns:
        table.add_column(title, justify="right" if right else "left", no_wrap=True)
    return table


def _more(rows: Sequence[object]) -> Iterator[RenderableType]:
    if len(rows) > MAX_ROWS:
        yield Text(f" and {len(rows) - MAX_ROWS:,} more (--json FILE has all)")


def place(path: str, line: int) -> str:
    """Return a line as `file.py:12`: relative to the current folder, else with as much of its folder as fits."""
    own = Path(path)
    if own.is_relative_to(Path.cwd()):
        own = own.relative_to(Path.cwd())
    text = f"{own.name}:{line}"
    for folder in reversed(own.parts[:-1]):
        if len(folder) + 1 + len(text) > PLACE or folder == own.anchor:
            break
        text = f"{folder}/{text}"
    return _shortened(text, PLACE)


def _shortened(text: str, width: int) -> str:
    text = shown(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"
