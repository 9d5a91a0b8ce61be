"""From a place that Python's frames name to the expression in the tree, and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

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
    known = _Expressions(file)
    found: dict[Place, cst.CSTNode] = {}
    for place in places:
        if place.column is None:
            at = known.only_call(place.line)
        else:
            at = known.at(_in_characters(place, lines, file.module.encoding))
        if at is not None:
            found[place] = at
    return found


class _Expressions:
    """The expressions of a file by where they stand."""

    def __init__(self, file: SourceFile) -> None:
        self._exact: dict[_Span, cst.CSTNode] = {}
        self._entered: dict[tuple[int, int], cst.CSTNode] = {}
        self._calls: dict[int, list[cst.CSTNode]] = defaultdict(list)
        spans = list(_spans(file))
        starts = {id(node): span[:2] for node, span in spans}
        for node, span in spans:
            if isinstance(node, cst.With):
                # Python names the whole statement when it enters what stands in its head.
                if len(node.items) == 1:
                    self._entered[span[:2]] = node.items[0].item
                continue
            self._exact.setdefault(span, node)
            if isinstance(node, cst.Call):
                self._calls[span[0]].append(node)
        for node, span in spans:
            # A method call over several lines is said to begin at the method's name.
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                self._exact.setdefault((*starts[id(node.func.attr)], *span[2:]), node)

    def at(self, span: _Span) -> cst.CSTNode | None:
        """Return the expression that Python names so."""
        return self._exact.get(span) or self._entered.get(span[:2])

    def only_call(self, line: int) -> cst.CSTNode | None:
        """Return the one call that begins on a line; None where there are several."""
        calls = self._calls[line]
        return calls[0] if len(calls) == 1 else None


def places_of(file: SourceFile, nodes: Mapping[Place, cst.CSTNode]) -> dict[Place, Place]:
    """Return the place that each node has in the file now, by its place before."""
    spans = {id(node): span for node, span in _spans(file)}
    lines, encoding = file.module.bytes.splitlines(), file.module.encoding
    return {
        old: _place(old, spans[id(node)], lines, encoding) for old, node in nodes.items() if id(node) in spans
    }


def _place(old: Place, span: _Span, lines: Sequence[bytes], encoding: str) -> Place:
    if old.column is None:
        return replace(old, line=span[0])
    first = _width(lines, span[0], span[1], encoding)
    last = _width(lines, span[2], span[3], encoding)
    return replace(old, line=span[0], column=first, end_line=span[2], end_column=last)


def _spans(file: SourceFile) -> Iterator[tuple[cst.CSTNode, _Span]]:
    positions = MetadataWrapper(file.module, unsafe_skip_copy=True).resolve(PositionProvider)
    for node, where in positions.items():
        if isinstance(node, (*_EXPRESSIONS, cst.With)) and isinstance(where, CodeRange):
            start, end = where.start, where.end
            yield node, (start.line, start.column, end.line, end.column)


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
