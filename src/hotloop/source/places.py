"""From a place that Python's frames name to the expression in the tree, and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from msgspec.structs import replace

from hotloop.model.sites import Place
from hotloop.source.source_file import SourceFile

_Span = tuple[int, int, int, int]
_EXPRESSIONS = (cst.Call, cst.Attribute, cst.Name, cst.BinaryOperation, cst.Subscript, cst.Await)
"""What a frame can be at while something of ours is called: a call, or what an operator or a `with` calls."""


def expressions_at(file: SourceFile, raw: bytes, places: Sequence[Place]) -> dict[Place, cst.CSTNode]:
    """Return the expression at each place; places where none, or more than one, can be meant are left out."""
    if not places:
        return {}
    lines = raw.splitlines()
    encoding = file.module.encoding
    exact: dict[_Span, cst.CSTNode] = {}
    by_line: dict[int, list[cst.CSTNode]] = defaultdict(list)
    methods: dict[int, tuple[cst.Call, _Span]] = {}
    entered: dict[tuple[int, int], cst.CSTNode] = {}
    for node, span in _spans(file):
        if isinstance(
            node, cst.With
        ):  # Python names the whole statement when it enters what stands in its head
            if len(node.items) == 1:
                entered[span[:2]] = node.items[0].item
            continue
        exact.setdefault(span, node)
        if isinstance(node, cst.Call):
            by_line[span[0]].append(node)
            if isinstance(node.func, cst.Attribute):
                methods[id(node.func.attr)] = (node, span)
        if id(node) in methods:
            # A method call over several lines is said to begin at the method's name.
            call, whole = methods[id(node)]
            exact.setdefault((*span[:2], *whole[2:]), call)
    found: dict[Place, cst.CSTNode] = {}
    for place in places:
        at = _only(by_line[place.line])
        if place.column is not None:
            span = _in_characters(place, lines, encoding)
            at = exact.get(span) or entered.get(span[:2])
        if at is not None:
            found[place] = at
    return found


def place_of(file: SourceFile, node: cst.CSTNode, old: Place) -> Place | None:
    """Return the place that a node of the file has now; None: it is not in the file any more."""
    span = next((span for each, span in _spans(file) if each is node), None)
    if span is None:
        return None
    if old.column is None:
        return replace(old, line=span[0])
    lines = file.module.bytes.splitlines()
    first, last = (_width(lines, line, column, file.module.encoding) for line, column in (span[:2], span[2:]))
    return replace(old, line=span[0], column=first, end_line=span[2], end_column=last)


def _spans(file: SourceFile) -> Iterator[tuple[cst.CSTNode, _Span]]:
    positions = MetadataWrapper(file.module, unsafe_skip_copy=True).resolve(PositionProvider)
    for node, where in positions.items():
        if isinstance(node, (*_EXPRESSIONS, cst.With)) and isinstance(where, CodeRange):
            start, end = where.start, where.end
            yield node, (start.line, start.column, end.line, end.column)


def _only(calls: Sequence[cst.CSTNode]) -> cst.CSTNode | None:
    """A line is all that is known: the outermost call, if the others are its arguments or its receiver."""
    return calls[0] if len(calls) == 1 else None


def _in_characters(place: Place, lines: Sequence[bytes], encoding: str) -> _Span:
    """Python counts bytes of UTF-8, the tree characters."""
    assert place.column is not None
    assert place.end_line is not None
    assert place.end_column is not None
    first = _characters(lines, place.line, place.column, encoding)
    last = _characters(lines, place.end_line, place.end_column, encoding)
    return place.line, first, place.end_line, last


def _characters(lines: Sequence[bytes], line: int, column: int, encoding: str) -> int:
    if line > len(lines):
        return -1
    return len(lines[line - 1].decode(encoding).encode()[:column].decode(errors="ignore"))


def _width(lines: Sequence[bytes], line: int, column: int, encoding: str) -> int:
    return len(lines[line - 1].decode(encoding)[:column].encode())
