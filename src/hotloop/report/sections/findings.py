"""Why: findings with their price, each with its line and its manual page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec

from hotloop.model.finding import Finding
from hotloop.model.quantities import counted
from hotloop.report.content.content import Excerpt, ReportContent
from hotloop.report.content.finding_filter import SHOWN, cost, gain, worth_showing
from hotloop.report.content.places import place
from hotloop.report.document import Code, Details, Facts, More, Section


def findings(content: ReportContent) -> Section | None:
    """Return the section; None: there is no observation to find anything in."""
    if content.observation is None or content.observation.step is None:
        return None
    found = content.findings
    worth = worth_showing(found, content.observation.foreign_share)[:SHOWN]
    rest = [one for one in found if one not in worth]
    why = (
        f"{content.bottleneck.sentence[0].upper()}{content.bottleneck.sentence[1:]}. "
        if content.bottleneck
        else ""
    )
    blocks = [_of_page(content, one, number, open_=True) for number, one in enumerate(worth)]
    if rest:
        folded = tuple(_of_page(content, one, number) for number, one in enumerate(rest, len(worth)))
        blocks.append(Details(counted(len(rest), f"{'further ' * bool(worth)}finding"), folded))
    return Section(
        anchor="findings", title="Why", lead=f"{why}{_number(len(found), len(worth))}.", blocks=tuple(blocks)
    )


def _number(num: int, num_shown: int) -> str:
    if not num:
        return "No rule found a cause"
    if not num_shown:
        return "No finding worth acting on"
    found = counted(num, "finding")
    return found if num == num_shown else f"{found}, the most important first"


def _of_page(content: ReportContent, one: Finding, number: int, *, open_: bool = False) -> Details:
    excerpt = next(
        (each for each in content.excerpts if (each.path, each.line) == (one.path, one.line)), None
    )
    code = (_code(excerpt),) if excerpt is not None else ()
    links = [("manual page", f"manual-{one.code}")] if one.code in content.manual else []
    if one.optimization and one.optimization in content.manual:
        links.append((f"the fix that is tried: {one.optimization}", f"manual-{one.optimization}"))
    command = content.observation.command if content.observation else ()
    said = finding(one, command, open_=open_)
    return msgspec.structs.replace(
        said, blocks=(*said.blocks, *code), anchor=f"finding-{number + 1}", links=tuple(links)
    )


def finding(one: Finding, command: Sequence[str], *, open_: bool = True) -> Details:
    """Return a finding: where it is, what was seen, what it costs and would gain, and what to do.

    Args:
        one: what was found.
        command: of the program.
        open_: show it without a click.
    """
    tried = tuple(_tried(one, command))
    return Details(
        one.title,
        (Facts(tuple(_rows(one))), *([More((Facts(tried),))] if tried else [])),
        badge=one.severity.value,
        name=one.code,
        open=open_,
    )


def _code(excerpt: Excerpt) -> Code:
    return Code(excerpt.text, "python", first=excerpt.first, marked=excerpt.line)


def _tried(one: Finding, command: Sequence[str]) -> Iterator[tuple[str, str]]:
    if one.optimization:
        yield "try it", shlex.join(["hotloop", "tune", "--only", one.optimization, *command])


def _rows(one: Finding) -> Iterator[tuple[str, str]]:
    costs, gains = cost(one), gain(one)
    said = (
        ("where", place(one)),
        ("seen", one.evidence),
        ("costs", costs),
        ("gain", gains),
        ("do", f"{one.advice}{'' if one.optimization else ' (fix by hand)'}"),
    )
    yield from ((name, text) for name, text in said if text)
