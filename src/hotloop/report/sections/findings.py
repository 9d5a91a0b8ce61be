"""Why: findings with their price, each with its line and its manual page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.quantities import duration
from hotloop.report.content.content import Excerpt, ReportContent
from hotloop.report.content.figures import speedup, times
from hotloop.report.document import Block, Code, Details, Facts, Section


def findings(content: ReportContent) -> Section | None:
    """Return the section; None: there is no observation to find anything in."""
    if content.observation is None or content.observation.step is None:
        return None
    found = content.findings
    loud = sum(one.severity is not Severity.INFO for one in found)
    why = (
        f"{content.bottleneck.sentence[0].upper()}{content.bottleneck.sentence[1:]}."
        if content.bottleneck
        else ""
    )
    num = (
        f"{len(found)} finding{'s' * (len(found) != 1)}, {loud} of them worth acting on."
        if found
        else "Nothing was found."
    )
    return Section(
        anchor="findings",
        title="Why",
        lead=f"{why} {num}".strip(),
        blocks=tuple(_finding(content, one, number) for number, one in enumerate(found)),
    )


def _finding(content: ReportContent, one: Finding, number: int) -> Block:
    excerpt = next(
        (each for each in content.excerpts if (each.path, each.line) == (one.path, one.line)), None
    )
    command = content.observation.command if content.observation else ()
    blocks: list[Block] = [Facts((*_rows(one), *_tried(one, command)))]
    if excerpt is not None:
        blocks.append(_code(excerpt))
    links = [("manual page", f"manual-{one.code}")] if one.code in content.manual else []
    if one.optimization and one.optimization in content.manual:
        links.append((f"the fix that is tried: {one.optimization}", f"manual-{one.optimization}"))
    price = f" · {duration(one.cost_s)} a step" if one.cost_s is not None else ""
    return Details(
        f"{one.title}{price}",
        tuple(blocks),
        anchor=f"finding-{number + 1}",
        badge=one.severity.value,
        links=tuple(links),
    )


def _code(excerpt: Excerpt) -> Code:
    return Code(excerpt.text, "python", first=excerpt.first, marked=excerpt.line)


def _tried(one: Finding, command: Sequence[str]) -> Iterator[tuple[str, str]]:
    if one.optimization:
        yield "try it", shlex.join(["hotloop", "tune", "--only", one.optimization, *command])


def _rows(one: Finding) -> Iterator[tuple[str, str]]:
    yield "code", one.code
    if one.path is not None:
        yield "where", f"{one.path}:{one.line}" if one.line is not None else one.path
    elif one.metric is not None:
        yield "where", one.metric
    if one.evidence:
        yield "seen", one.evidence
    if one.cost_s is not None:
        low, high = one.cost_low_s, one.cost_high_s
        interval = (
            times(low, one.cost_s, high) if low is not None and high is not None else duration(one.cost_s)
        )
        yield "costs", f"{interval} a step"
    else:
        yield "costs", "not measured"
    if one.gain is not None:
        yield "would gain", f"{speedup(one.gain)}, predicted, not measured"
    if one.advice:
        yield "do", one.advice
