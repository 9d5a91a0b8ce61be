"""Text that is not ours, made fit to be shown: one function for every terminal, log, annotation and page.

Names of files and archive members, event names of traces, exception texts and the end of a program's log are written by
others. Raw, they could move the cursor, rename the window, hide text or start a line that a CI system obeys.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import msgspec

_COMMAND = re.compile(r"^([ \t]*)(::|##(?=\[|vso\[))", re.MULTILINE)
"""What GitHub and Azure obey at the beginning of a line, blanks before it or not."""
_JOINERS = "\u200c\u200d"
"""Invisible, and still part of how words of some scripts and some emoji are written."""


def shown(text: str, *, lines: bool = False) -> str:
    r"""Return text of others in a form that is safe to show, on one line.

    Control characters, escape sequences, direction overrides, invisible characters and halves of surrogate pairs are
    written out as Python would (`\x1b`, `\u202e`, `\udc80` as `\x80`). What is printable comes back as it was.

    The result is text, never markup: hand it to rich as `Text`, and to HTML and Markdown through their own escaping.

    Args:
        text: file names, messages, names in traces.
        lines: keep line ends and tabs, for text that is shown as a block of its own (the end of a log).
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(char if char.isprintable() or char in kept else _written_out(char) for char in text)


def _written_out(char: str) -> str:
    if char in _JOINERS or unicodedata.category(char) == "Zs":
        return char
    if "\udc80" <= char <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def obeyed_by_none(text: str) -> str:
    """Return lines of which none is a command to a CI system (`::error`, `##vso[`), wherever text was folded."""
    return _COMMAND.sub(lambda found: f"{found[1]}{found[2][0]} {found[2][1:]}", text)


def inert_json(text: str) -> str:
    r"""Return JSON that means the same and can be shown as it is: what would steer a terminal is written `\u009b`."""
    return "".join(
        char if char.isprintable() or char in " \n\t" or char in _JOINERS else _in_json(char) for char in text
    )


def _in_json(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def encodable(value: Any) -> Any:
    """Return a value as plain lists and dicts whose strings all have a UTF-8 form, for JSON and msgpack.

    Names of files may hold bytes that are not UTF-8; a result is not refused for that.
    """
    return _encodable(msgspec.to_builtins(value))


def _encodable(plain: Any) -> Any:
    if isinstance(plain, str):
        return plain.encode(errors="backslashreplace").decode()
    if isinstance(plain, dict):
        return {_encodable(key): _encodable(inner) for key, inner in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [_encodable(inner) for inner in plain]
    return plain
