"""Thirty strings that somebody else may have written, and what must never reach a terminal or a log raw."""

STRINGS = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[8mhidden",
    "\x9b31mone byte",
    "bell\x07",
    "back\x08\x08\x08space",
    "car\rriage",
    "ver\x0btical",
    "form\x0cfeed",
    "nul\x00",
    "del\x7f",
    "\u202egnp.exe",
    "\u2066isolate\u2069",
    "\u200fright",
    "zero\u200bwidth",
    "\ufeffmark",
    "line\u2028separator",
    "paragraph\u2029",
    "next\x85line",
    "two\nlines",
    "x\n::error file=a,line=1::injected",
    "x\r\n::add-mask::y",
    "\udc80not utf-8\udcff",
    "\ud800half",
    "[bold]markup[/bold]",
    "\\[/q]",
    ":smile: [link=http://evil]x[/link]",
    "\U000e0041tag",
)
RAW = (
    "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
    + "\u200b\u200f\u202e\u2028\u2029\u2066\ufeff"
)
"""Characters that are never shown as they are; line ends and tabs are judged by where they stand."""


def raw_in(text: str) -> set[str]:
    """Return what of `RAW`, and of halves of surrogate pairs, text holds; rich's own colours are not in our tests."""
    return {char for char in text if char in RAW or "\ud800" <= char <= "\udfff" or char >= "\U000e0000"}
