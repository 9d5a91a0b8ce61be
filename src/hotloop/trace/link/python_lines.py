"""Python lines in a trace: from Python function events, or from the stacks of older traces."""

import re

import msgspec

from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE

_FRAME = re.compile(r"^(?P<path>.+?)\((?P<line>\d+)\): (?P<function>.+)$")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|lib/python\d|^torch/|^<|^threading\.py|^transformers/|^accelerate/|^lightning/|^contextlib\.py|^runpy\.py|^_"
)
"""Frames of libraries; the user's own frame is the innermost one that is none of these."""


class PythonSite(msgspec.Struct, frozen=True):
    """A function in a file; `line` is where the profiler saw it."""

    path: str
    line: int
    function: str


def parse_frame(name: str) -> PythonSite | None:
    """`train.py(12): step` as a site; None for built-in functions and modules."""
    found = _FRAME.match(name)
    return PythonSite(found["path"], int(found["line"]), found["function"]) if found else None


def is_library(site: PythonSite) -> bool:
    """Whether the file belongs to an installed package."""
    return _LIBRARY.search(site.path) is not None


def site_above(linked: LinkedTrace, row: int) -> PythonSite | None:
    """The innermost Python frame around a host event: the user's own, or else a library's."""
    at = int(linked.nearest_python[row])
    innermost: PythonSite | None = None
    while at >= 0:
        site = parse_frame(linked.name(at))
        if site is not None:
            if not is_library(site):
                return site
            innermost = innermost or site
        above = int(linked.nesting.parent[at])
        at = int(linked.nearest_python[above]) if above >= 0 else NONE
    return innermost


def site_in_stack(linked: LinkedTrace, row: int) -> PythonSite | None:
    """The same from the `Call stack` of the nearest operator that has one."""
    innermost: PythonSite | None = None
    for above in linked.nesting.chain(row):
        argument = int(linked.argument_row[above])
        if argument < 0 or linked.trace.operators.stack[argument] < 0:
            continue
        for frame in _frames(linked.trace.texts[int(linked.trace.operators.stack[argument])]):
            site = parse_frame(frame)
            if site is not None and not is_library(site):
                return site
            innermost = innermost or site
        if innermost is not None:
            return innermost
    return innermost


def _frames(text: bytes) -> list[str]:
    try:
        stack = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return stack.split(";") if isinstance(stack, str) else []
