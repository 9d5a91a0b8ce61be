"""`hotloop explain NAME`: the manual page of a finding or an optimization."""

import difflib
import importlib
from typing import Protocol, cast

import click

from hotloop.model.errors import HotloopError


class PageSource(Protocol):
    """A module that holds manual pages."""

    def names(self) -> list[str]:
        """The names it has pages for."""
        ...

    def page(self, name: str) -> str | None:
        """One page as Markdown."""
        ...


# Modules with `names()` and `page(name)`; a kind of thing that can be explained adds its module here.
_SOURCES: tuple[str, ...] = ("hotloop.lint.pages",)


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print the manual page of a finding or an optimization; without a name, list all names."""
    sources = [cast(PageSource, importlib.import_module(module)) for module in _SOURCES]
    if name is None:
        click.echo("\n".join(sorted({known for source in sources for known in source.names()})))
        return
    wanted = [page for source in sources if (page := source.page(name)) is not None]
    if not wanted:
        raise _unknown(name, sources)
    click.echo("\n".join(wanted), nl=False)


def _unknown(name: str, sources: list[PageSource]) -> HotloopError:
    close = difflib.get_close_matches(name, [known for source in sources for known in source.names()], n=3)
    hint = (
        f"Did you mean {', '.join(close)}?" if close else "`hotloop explain` without a name lists them all."
    )
    return HotloopError(f"There is no page for {name!r}.", hint)
