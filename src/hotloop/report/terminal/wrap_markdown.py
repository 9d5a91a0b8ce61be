"""Markdown whose paragraphs fit a width, still as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from markdown_it import MarkdownIt

_MARK = re.compile(r"\s*([-*+] |\d+\. )?")
"""The indent of a paragraph, and the mark where it is an item of a list."""


def refilled(text: str, width: int) -> str:
    """Return Markdown with its paragraphs wrapped anew; code, headings and tables stay as they are."""
    lines = text.splitlines()
    for token in reversed(MarkdownIt("commonmark").enable("table").parse(text)):
        if token.type == "paragraph_open" and token.map is not None:
            begin, end = token.map
            lines[begin:end] = _wrapped(lines[begin:end], width)
    return "".join(f"{line}\n" for line in lines)


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    found = _MARK.match(lines[0])
    mark = found[0] if found else ""
    words = " ".join([lines[0].removeprefix(mark), *(line.strip() for line in lines[1:])])
    return textwrap.wrap(
        words,
        width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,  # addresses and names are copied whole
        break_on_hyphens=False,
    )
