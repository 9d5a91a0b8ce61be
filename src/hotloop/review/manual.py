"""The manual pages of everything that has a name: findings of three kinds, and optimizations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
SOURCES: tuple[PageSource, ...] = (
    PageSource(
        "Optimizations, tried by hotloop tune", "an optimization", _optimization_titles, _optimization_page
    ),
    PageSource(
        "Findings of hotloop diagnose", "a finding of hotloop diagnose", _measured_titles, _measured_page
    ),
    PageSource("Findings of hotloop lint", "a finding of hotloop lint", _rule_titles, _rule_page),
    PageSource("Findings of hotloop trace", "a finding of hotloop trace", _trace_titles, _trace_page),
)


def manual_page(name: str) -> str | None:
    """Return the manual page of a finding or an optimization as Markdown, of all that have the name; None: none has."""
    pages = [_headed(page, source) for source in SOURCES if (page := source.page(name)) is not None]
    return "\n".join(pages) if pages else None


def _headed(page: str, source: PageSource) -> str:
    """Say in a page's heading what it is of: several kinds of findings may share a name."""
    heading, _, rest = page.partition("\n")
    return f"{heading}, {source.one}\n{rest}"
