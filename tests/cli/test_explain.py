"""Every code that hotloop shows has a page."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import hotloop
from hotloop.cli.app import run
from hotloop.report.terminal.wrap_markdown import refilled
from hotloop.review.manual import SOURCES, PageSource, manual_page

PATTERNS = Path(hotloop.__file__).parent / "trace" / "causes" / "patterns"


def _trace_codes() -> set[str]:
    """Every code that a pattern gives to a finding."""
    values = [
        keyword.value
        for file in PATTERNS.glob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        for keyword in (call.keywords if isinstance(call, ast.Call) else ())
        if keyword.arg == "code"
    ]
    # One pattern chooses between two codes beforehand.
    chosen = {"unfused-optimizer", "single-tensor-loop"}
    return chosen | {
        one.value
        for value in values
        for one in ast.walk(value)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


@pytest.mark.parametrize("code", sorted(_trace_codes()))
def test_a_code_of_a_trace_has_a_page(code: str) -> None:
    page = manual_page(code)
    assert page is not None
    assert "hotloop trace analyze" in page


def test_the_list_is_grouped_with_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line for line in lines if line and not line.startswith(" ")][:-1] == [
        source.kind for source in SOURCES
    ]
    named = {line.split()[0] for line in lines if line.startswith("  ")}
    assert {"loader_workers", "sync-in-step", "anomaly-mode-on", "exposed-communication"} <= named


def test_pages_of_one_name_say_which_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "workers-not-persistent"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("# ")] == [
        "# workers-not-persistent, a finding of hotloop diagnose",
        "# workers-not-persistent, a finding of hotloop lint",
    ]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.kind)
def test_paragraphs_of_pages_fit_the_screen_and_lose_nothing(source: PageSource) -> None:
    for name in source.titles():
        page = source.page(name)
        assert page is not None
        filled = refilled(page, 80)
        assert filled.split() == page.split()
        assert _prose(filled) == _prose(page)
        too_long = [line for line in _paragraphs(filled) if len(line) > 80 and len(line.split()) > 2]
        assert not too_long, name


def _paragraphs(page: str) -> list[str]:
    """The lines of a page outside of its code."""
    return [line for part in page.split("```")[::2] for line in part.splitlines() if line[:1] != "#"]


def _prose(page: str) -> str:
    """What a reader gets to see of it, wherever its lines end."""
    return " ".join(MarkdownIt("commonmark").render(page).split())


def test_a_misspelt_name_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "loader_worker"]) == 2
    assert "did you mean loader_workers" in capsys.readouterr().err
