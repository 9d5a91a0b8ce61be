"""Judge a file before it is parsed: what cannot be source, or would take the parser's stack or memory, is not."""

from __future__ import annotations

import re
import tokenize

from hotloop.model.regular_file import IrregularFileError, regular_bytes

MAX_BYTES = 2 << 20
"""Python of people is far smaller; the largest file of the public scripts that the tests know has 120 kB."""
MAX_NOTEBOOK_BYTES = 256 << 20
"""A notebook holds the pictures that its cells have drawn; its code alone is held to MAX_BYTES."""
MAX_DEPTH = 300
"""Nested brackets and links of one chain. Measured: LibCST takes 54 MB for 400 nested lambdas and 1.5 GB for 3,000
nested conditions; 3,000 parentheses end the process."""
MAX_ELIFS = 1500
_TOKENS = re.compile(
    r"""
    (?P<skip> \#[^\n]* | \\\n | (?P<string>[rbufRBUF]{0,2}(?:'''(?s:\\.|.)*?'''|\"\"\"(?s:\\.|.)*?\"\"\"
      | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*")))
    | (?P<open>[\[({]) | (?P<close>[\])}]) | (?P<end>[,;\n] | (?<![=<>!])=(?!=))
    | (?P<link>[-+*/%@&|^~.<>!=]+ | \b(?:and|or|not|in|is|if|else|lambda|await|for|yield)\b)
    | (?P<elif>\belif\b) | \w+
    """,
    re.VERBOSE,
)


class Unfit(Exception):  # noqa: N818 - a judgement, not a failure of ours
    """The file is not read; the text says why."""


def source_bytes(path: str, most: int = MAX_BYTES) -> bytes:
    """Return a file's content.

    Raises:
        Unfit: it is no regular file, or larger than `most` bytes.
        OSError: it cannot be read.
    """
    try:
        return regular_bytes(path, most)
    except IrregularFileError as error:
        raise Unfit(str(error)) from error


def decoded(content: bytes) -> tuple[str, str]:
    """Return the text with its line ends as they are, and its encoding.

    Raises:
        Unfit: it is no text in the encoding that it names.
    """
    lines = iter(content.splitlines(keepends=True))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
        return content.decode(encoding), encoding
    except (LookupError, ValueError, SyntaxError, OverflowError) as error:
        raise Unfit(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def check_depth(text: str) -> None:
    """Demand that the text is no deeper than a parser can go.

    Raises:
        Unfit: brackets, a chain of operators or a chain of `elif` are too deep.
    """
    open_: list[int] = []
    links = num_elifs = below = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "open":
            open_.append(links)
            below += links + 1
            links = 0
        elif kind == "close" and open_:
            links = open_.pop()
            below -= links + 1
            links += 1  # a call or a subscript is a link of the chain that it stands in
        elif kind == "end":
            links = links if token[0] == "\n" and open_ else 0
        elif kind == "link":
            links += len(token[0]) if not token[0].isalpha() else 1
        elif kind == "elif":
            num_elifs += 1
        if below + links > MAX_DEPTH or num_elifs > MAX_ELIFS:
            line = text.count("\n", 0, token.start()) + 1
            raise Unfit(f"line {line} is nested deeper than {MAX_DEPTH} levels")
