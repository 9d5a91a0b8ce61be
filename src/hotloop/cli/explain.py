"""`hotloop explain NAME`: the manual page of a finding or an optimization."""

import difflib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from hotloop.model.errors import HotloopError
from hotloop.report.terminal.layout import WIDTH


@dataclass(frozen=True)
class PageSource:
    """One kind of thing that can be explained; what it needs is imported when it is asked."""

    kind: str
    one: str
    """What one of them is, for the heading of its page."""
    titles: Callable[[], dict[str, str]]
    """What each name means, in a line."""
    page: Callable[[str], str | None]
    """One page as Markdown; None where it has no such name."""


def _rule_titles() -> dict[str, str]:
    from hotloop.lint.check.registry import all_rules

    return {rule.code: rule.title for rule in all_rules()}


def _rule_page(name: str) -> str | None:
    from hotloop.lint.manual import pages

    return pages.page(name)


def _measured_titles() -> dict[str, str]:
    from hotloop.diagnose.check.registry import all_rules

    return {rule.code: rule.title for rule in all_rules()}


def _measured_page(name: str) -> str | None:
    from hotloop.diagnose.manual import pages

    return pages.page(name)


def _trace_titles() -> dict[str, str]:
    from hotloop.trace.manual import PAGES

    return {code: found.title for code, found in PAGES.items()}


def _trace_page(name: str) -> str | None:
    from hotloop.trace.manual import page

    return page(name)


def _optimization_titles() -> dict[str, str]:
    from hotloop.optimize.registry import all_optimizations

    return {one.name: one.manual().strip().splitlines()[0].rstrip(".") for one in all_optimizations()}


def _optimization_page(name: str) -> str | None:
    from hotloop.optimize.registry import all_optimizations

    found = next((one for one in all_optimizations() if one.name == name), None)
    return f"# {name}\n\n{found.manual().strip()}\n" if found is not None else None


# Another kind of page is another line here.
_SOURCES: tuple[PageSource, ...] = (
    PageSource(
        "Optimizations, tried by hotloop tune", "an optimization", _optimization_titles, _optimization_page
    ),
    PageSource(
        "Findings of hotloop diagnose", "a finding of hotloop diagnose", _measured_titles, _measured_page
    ),
    PageSource("Findings of hotloop lint", "a finding of hotloop lint", _rule_titles, _rule_page),
    PageSource("Findings of hotloop trace", "a finding of hotloop trace", _trace_titles, _trace_page),
)


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
        from hotloop.report.terminal.refilled import refilled

        click.echo(refilled(page, WIDTH), nl=False)


def _show(page: str) -> None:
    """Lay a page out for a terminal, in the terminal's own colours."""
    from rich.markdown import Markdown

    from hotloop.report.terminal.screen import Screen

    Screen().show(Markdown(page, code_theme="ansi_dark", hyperlinks=False))


def manual_page(name: str) -> str | None:
    """Return the manual page of a finding or an optimization as Markdown, of all that have the name; None: none has."""
    pages = [_headed(page, source) for source in _SOURCES if (page := source.page(name)) is not None]
    return "\n".join(pages) if pages else None


def _headed(page: str, source: PageSource) -> str:
    """Say in a page's heading what it is of: several kinds of findings may share a name."""
    heading, _, rest = page.partition("\n")
    return f"{heading}, {source.one}\n{rest}"


def _listed() -> Iterator[str]:
    """Yield all names in groups, with what they mean, a line each."""
    for source in _SOURCES:
        yield source.kind
        titles = source.titles()
        width = max(map(len, titles))
        for name in sorted(titles):
            line = f"  {name:<{width}}  {titles[name]}"
            yield line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"
        yield ""
    yield "hotloop explain NAME shows a page."


def _all_names() -> list[str]:
    return sorted({name for source in _SOURCES for name in source.titles()})


def _unknown(name: str) -> HotloopError:
    close = difflib.get_close_matches(name, _all_names(), n=3)
    listed = "hotloop explain, without a name, lists them all"
    return HotloopError(
        f"there is no page for {name!r}", f"did you mean {', '.join(close)}?" if close else listed
    )
