"""`hotloop explain NAME`: the manual page of a finding or an optimization."""

import difflib
import sys
from collections.abc import Iterator

import click

from hotloop.model.errors import HotloopError
from hotloop.report.terminal.console import screen_width
from hotloop.review.manual import SOURCES, manual_page


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the manual page of a finding or an optimization; without a name, list all names."""
    if name is None:
        click.echo("\n".join(_listed()))
        return
    page = manual_page(name)
    if page is None:
        raise _unknown(name)
    if sys.stdout.isatty():
        _show(page)
    else:
        from hotloop.report.terminal.wrap_markdown import refilled

        click.echo(refilled(page, screen_width()), nl=False)


def _show(page: str) -> None:
    """Lay a page out for a terminal, in the terminal's own colours."""
    from rich.markdown import Markdown

    from hotloop.report.terminal.screen import Screen

    Screen().show(Markdown(page, code_theme="ansi_dark", hyperlinks=False))


def _listed() -> Iterator[str]:
    """Yield all names in groups, with what they mean, a line each."""
    room = screen_width()
    for source in SOURCES:
        yield source.kind
        titles = source.titles()
        width = max(map(len, titles))
        for name in sorted(titles):
            line = f"  {name:<{width}}  {titles[name]}"
            yield line if len(line) <= room else f"{line[: room - 1].rstrip()}…"
        yield ""
    yield "hotloop explain NAME shows a page."


def _all_names() -> list[str]:
    return sorted({name for source in SOURCES for name in source.titles()})


def _unknown(name: str) -> HotloopError:
    close = difflib.get_close_matches(name, _all_names(), n=3)
    listed = "hotloop explain, without a name, lists them all"
    return HotloopError(
        f"there is no page for {name!r}", f"did you mean {', '.join(close)}?" if close else listed
    )
