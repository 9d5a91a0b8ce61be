"""`hotloop explain NAME`: the manual page of a finding or an optimization."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import click

from hotloop.model.errors import HotloopError


@dataclass(frozen=True)
class PageSource:
    """One kind of thing that can be explained; what it needs is imported when it is asked."""

    names: Callable[[], list[str]]
    page: Callable[[str], str | None]
    """One page as Markdown; None where it has no such name."""


def _rule_names() -> list[str]:
    from hotloop.lint.manual import pages

    return pages.names()


def _rule_page(name: str) -> str | None:
    from hotloop.lint.manual import pages

    return pages.page(name)


def _measured_names() -> list[str]:
    from hotloop.diagnose.manual import pages

    return pages.names()


def _measured_page(name: str) -> str | None:
    from hotloop.diagnose.manual import pages

    return pages.page(name)


def _optimization_names() -> list[str]:
    from hotloop.optimize.registry import all_optimizations

    return [optimization.name for optimization in all_optimizations()]


def _optimization_page(name: str) -> str | None:
    from hotloop.optimize.registry import all_optimizations

    found = next((one for one in all_optimizations() if one.name == name), None)
    return f"# {name}\n\n{found.manual().strip()}\n" if found is not None else None


# Another kind of page is another line here.
_SOURCES: tuple[PageSource, ...] = (
    PageSource(_measured_names, _measured_page),
    PageSource(_rule_names, _rule_page),
    PageSource(_optimization_names, _optimization_page),
)


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the manual page of a finding or an optimization; without a name, list all names."""
    if name is None:
        click.echo("\n".join(_all_names()))
        return
    page = manual_page(name)
    if page is None:
        raise _unknown(name)
    click.echo(page, nl=False)


def manual_page(name: str) -> str | None:
    """Return the manual page of a finding or an optimization as Markdown, of all that have the name; None: none has."""
    pages = [page for source in _SOURCES if (page := source.page(name)) is not None]
    return "\n".join(pages) if pages else None


def _all_names() -> list[str]:
    return sorted({name for source in _SOURCES for name in source.names()})


def _unknown(name: str) -> HotloopError:
    close = difflib.get_close_matches(name, _all_names(), n=3)
    listed = "`hotloop explain` without a name lists them all."
    return HotloopError(
        f"There is no page for {name!r}.", f"Did you mean {', '.join(close)}?" if close else listed
    )
