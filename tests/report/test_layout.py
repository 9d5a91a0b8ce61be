"""Hanging indents, and commands that a shell understands."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.report.document import Table
from hotloop.report.terminal.layout import facts, next_steps, paste
from hotloop.report.terminal.walk import render_blocks

from .results import shown


def test_long_facts_go_on_under_themselves() -> None:
    text = shown(facts([("memory", "ab " * 40), ("", "and more")]), width=40)
    lines = text.splitlines()
    assert lines[0].startswith("memory    ab ab")
    assert all(line.startswith(" " * 10 + "ab") for line in lines[1:-1])
    assert lines[-1] == " " * 10 + "and more"


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30), min_size=1))
def test_a_pasted_command_is_the_command(words: list[str]) -> None:
    assert shlex.split(paste(words).replace(" \\\n", " ")) == words


def test_a_long_command_goes_on_in_the_next_line() -> None:
    lines = paste(["python", "train.py", *(f"--option{number}" for number in range(20))]).splitlines()
    assert len(lines) > 1
    assert all(line.endswith(" \\") and len(line) <= 80 for line in lines[:-1])
    assert all(line.startswith("    --option") for line in lines[1:])


@pytest.mark.parametrize("width", [20, 40, 80])
def test_what_to_type_next_can_be_pasted_at_every_width(width: int) -> None:
    words = ["hotloop", "diagnose", "python", f"/{'folder/' * 15}train.py", *["--an-option"] * 9]
    first, title, *lines = shown(next_steps([("causes and fixes", words)]), width=width).splitlines()
    assert (first, title, lines[0]) == ("", "next", "  causes and fixes")
    assert shlex.split("\n".join(lines[1:]).replace("\\\n", "")) == words
    assert all(line.endswith("\\") for line in lines[1:-1])


@pytest.mark.parametrize("width", [28, 45, 80])
def test_bars_have_what_names_and_figures_leave_of_the_screen(width: int) -> None:
    rows = (("forward", "61.4 ms", "46.3%"), ("backward", "5.1 ms", "3.9%"))
    table = Table(("mean step", "66.5 ms", "100%"), rows, figures=(1, 2), bars=(61.4, 5.1))
    lines = shown(render_blocks([table]), width=width).splitlines()
    assert [line.rstrip("█ ").split() for line in lines[-2:]] == [" ".join(row).split() for row in rows]
    assert max(map(len, lines)) <= width
    assert any("█" in line for line in lines) == (width > 30)
