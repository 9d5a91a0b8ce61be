"""The findings of a report's page: in words, with as much of an interval as says something, three at once."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import hotloop.diagnose.rules
from hotloop.model.finding import Finding, Severity
from hotloop.model.ratio import Ratio
from hotloop.report.content.content import ReportContent
from hotloop.report.content.places import WHOLE, place
from hotloop.report.document import Details, Facts
from hotloop.report.sections.findings import findings

from .rich_session import FINDINGS, content

VAGUE = Finding(
    code="host-code-in-model",
    title="The model computes on the host",
    severity=Severity.WARNING,
    metric="deep.operators",
    cost_s=0.02,
    cost_low_s=0.0,
    cost_high_s=0.9,
    gain=Ratio(1.69, 1.0, 100.0),
)
SMALL = Finding(
    code="unpinned-memory",
    title="Batches are copied from memory that is not pinned",
    severity=Severity.INFO,
    gain=Ratio(1.0, 1.0, 1.66),
    optimization="pinned_memory",
)


def _blocks(*found: Finding) -> tuple[str, list[Details]]:
    said: ReportContent = msgspec.structs.replace(content(), findings=found)
    section = findings(said)
    assert section is not None
    assert all(isinstance(block, Details) for block in section.blocks)
    return section.lead, [block for block in section.blocks if isinstance(block, Details)]


def _rows(block: Details) -> dict[str, str]:
    facts = block.blocks[0]
    assert isinstance(facts, Facts)
    return dict(facts.rows)


def test_an_interval_that_says_nothing_is_left_out() -> None:
    _, (only,) = _blocks(VAGUE)
    assert _rows(only)["gain"] == "perhaps 1.7x, predicted"
    assert _rows(only)["costs"] == "about 20.0 ms a step"
    assert _rows(only)["where"] == "operators"


def test_what_was_not_measured_takes_no_row() -> None:
    _, (only,) = _blocks(SMALL)
    (folded,) = only.blocks
    assert isinstance(folded, Details)
    assert {"costs", "gain"}.isdisjoint(_rows(folded))


def test_three_are_shown_and_the_rest_is_folded() -> None:
    lead, blocks = _blocks(*FINDINGS, SMALL, VAGUE)
    assert lead.endswith("4 findings, the most important first.")
    assert [block.title for block in blocks[3:]] == ["1 further finding"]
    assert len(blocks) == 4
    assert SMALL.title in str(blocks[3].blocks)


def test_none_that_matters() -> None:
    lead, (only,) = _blocks(SMALL)
    assert lead.endswith("No finding worth acting on.")
    assert only.title == "1 finding"


def _metrics() -> list[str]:
    folder = Path(hotloop.diagnose.rules.__file__).parent
    found = {
        name for file in folder.rglob("*.py") for name in re.findall(r'metric=f?"([^"]+)"', file.read_text())
    }
    return sorted(found)


@pytest.mark.parametrize("metric", _metrics())
def test_every_metric_of_a_rule_has_words(metric: str) -> None:
    words = place(Finding(code="x", title="x", severity=Severity.INFO, metric=metric))
    assert words != WHOLE
    assert "_" not in words
