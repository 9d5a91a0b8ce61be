"""Text of others is shown, and steers nothing."""

from __future__ import annotations

import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import encodable, obeyed_by_none, shown
from hotloop.report.formats.github import render_github
from hotloop.report.formats.lint_json import render_json
from hotloop.report.formats.sarif import render_sarif
from hotloop.report.terminal.console import console
from hotloop.report.terminal.lint import render_text
from tests.model.hostile import STRINGS, raw_in


@pytest.mark.parametrize("text", STRINGS)
def test_a_string_becomes_one_harmless_line(text: str) -> None:
    made = shown(text)
    assert not raw_in(made)
    assert "\n" not in made
    made.encode()  # has a UTF-8 form


def test_what_is_printable_stays() -> None:
    for text in ("train.py:12", "héllo 漢字 🎉", "क्\u200dष", "a\u00a0b", "[/q]"):
        assert shown(text) == text


def test_a_block_keeps_its_lines() -> None:
    assert shown("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


def test_bytes_of_file_names_are_written_as_bytes() -> None:
    assert shown("caf\udce9.py") == "caf\\xe9.py"


@pytest.mark.parametrize("text", STRINGS)
def test_the_console_lets_nothing_through_and_reads_no_markup(text: str) -> None:
    screen = console()
    screen.file = io.StringIO()
    table = Table("name", text)
    table.add_row(text, Text(text))
    screen.print(text)
    screen.print(table)
    written = screen.file.getvalue()
    assert not raw_in(written)
    if "[" in text and text.isprintable():
        assert text in written


@pytest.mark.parametrize("text", STRINGS)
def test_findings_start_no_line_of_their_own(text: str) -> None:
    finding = Finding(
        code="sync-in-step",
        title=text,
        severity=Severity.WARNING,
        path=f"a{text}.py" if "\ud800" not in text else "a.py",  # no file has such a name
        line=1,
        metric=None,
        cost_s=None,
        gain=None,
        evidence=text,
        advice=text,
        optimization=None,
    )
    assert len(render_github([finding]).splitlines()) == 1
    assert not any(line.startswith("::") for line in render_text([finding], 1).splitlines())
    assert not raw_in(render_text([finding], 1) + render_github([finding]))
    for document in (render_sarif([finding], "1", {}), render_json([finding], 1)):
        document.encode()
        assert json.loads(document)
        json.dumps(json.loads(document), ensure_ascii=False).encode()  # no half of a pair behind an escape


def test_values_become_encodable() -> None:
    assert encodable({"a\udc80": ["b", 1, None]}) == {"a\\udc80": ["b", 1, None]}


def test_no_line_is_a_command_to_a_ci_system() -> None:
    text = "a ::b\n  ::error::c\n##vso[d]\n##[e]\n## f\n::g"
    assert obeyed_by_none(text) == "a ::b\n  : :error::c\n# #vso[d]\n# #[e]\n## f\n: :g"
