"""The Python source of a notebook, and the cell of each line."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

SUFFIX = ".ipynb"
_NOT_PYTHON = re.compile(r"^(\s*)(?:[%!]|\?|.*\?$|\w[\w, ]*=\s*[%!])")
"""Magics, shell commands and questions, which IPython takes out before Python sees a cell."""
_OTHER_LANGUAGE = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b)")


class Notebook(msgspec.Struct, frozen=True):
    """All code cells as one module.

    Attributes:
        source: the module; line ends are `\\n`.
        starts: the first line of each code cell, 1-based.
        numbers: what the notebook calls those cells: their place among all cells, 1-based.
    """

    source: str
    starts: tuple[int, ...]
    numbers: tuple[int, ...]

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell of a line of the module, and the line within it."""
        at = max(0, bisect_right(self.starts, line) - 1)
        return self.numbers[at], line - self.starts[at] + 1


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""


class _File(msgspec.Struct):
    cells: list[_Cell]


def read_notebook(text: str) -> Notebook:
    """Return the Python of a notebook's text.

    Raises:
        msgspec.MsgspecError: it is not a notebook.
    """
    lines: list[str] = []
    starts, numbers = [1], [1]
    for number, cell in enumerate(msgspec.json.decode(text, type=_File).cells, 1):
        if cell.cell_type == "code":
            starts.append(len(lines) + 1)
            numbers.append(number)
            lines += _lines("".join(cell.source))
    return Notebook("".join(f"{line}\n" for line in lines), tuple(starts), tuple(numbers))


def _lines(cell: str) -> list[str]:
    if _OTHER_LANGUAGE.match(cell):
        return ["pass"] * len(cell.splitlines())
    # What takes the place of a magic keeps the lines' numbers and the blocks' bodies.
    return [
        f"{magic[1]}pass"
        if (magic := _NOT_PYTHON.match(line)) and not line.lstrip().startswith("#")
        else line
        for line in cell.splitlines()
    ]
