"""One source file, parsed once: every node numbered in reading order, found by its type, with its parent."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TypeVar, cast

import libcst as cst

from hotloop.source.lines import node_lines

Node = TypeVar("Node", bound=cst.CSTNode)

# Fields that never hold an expression or a statement: skipping them makes the traversal three times as fast.
_TRIVIA = frozenset(
    {
        "leading_lines",
        "trailing_whitespace",
        "header",
        "footer",
        "lpar",
        "rpar",
        "comma",
        "equal",
        "colon",
        "semicolon",
        "lbracket",
        "rbracket",
        "lines_after_decorators",
        "lines_after_module_docstring",
        "indent",
        "operator",
        "asynchronous",
        "encoding",
        "default_indent",
        "default_newline",
        "has_trailing_newline",
        "value_type",
    }
)
_LEAVES = (
    cst.Name,
    cst.SimpleString,
    cst.Integer,
    cst.Float,
    cst.FormattedStringText,
    cst.Pass,
    cst.Ellipsis,
)


class SourceFile:
    """A parsed file with the index that all rules share.

    Args:
        path: as the user named it; it goes into the findings.
        text: the source.
        module: the same, parsed already; None: it is parsed here.

    Raises:
        libcst.ParserSyntaxError: the text is not Python.
    """

    def __init__(self, path: str, text: str, module: cst.Module | None = None) -> None:
        self.path = path
        self.text = text
        self.module = module if module is not None else cst.parse_module(text)
        self._nodes: list[cst.CSTNode] = []
        self._parents: list[int] = []
        self._index()

    def _index(self) -> None:
        self._number: dict[int, int] = {}
        self._by_type: dict[type[cst.CSTNode], list[int]] = defaultdict(list)
        nodes, parents, number, by_type = self._nodes, self._parents, self._number, self._by_type
        stack: list[tuple[cst.CSTNode, int]] = [(self.module, -1)]
        while stack:
            node, parent = stack.pop()
            place = len(nodes)
            number[id(node)] = place
            nodes.append(node)
            parents.append(parent)
            by_type[type(node)].append(place)
            stack.extend((child, place) for child in reversed(children(node)))

    @cached_property
    def _last(self) -> list[int]:
        """For every node the number of the last node below it."""
        last = list(range(len(self._nodes)))
        for place in range(len(last) - 1, 0, -1):
            parent = self._parents[place]
            last[parent] = max(last[parent], last[place])
        return last

    @cached_property
    def _lines(self) -> dict[int, int]:
        return node_lines(self.module)

    def line(self, node: cst.CSTNode) -> int:
        """The 1-based line on which the node starts."""
        return self._lines.get(id(node), 1)

    def number(self, node: cst.CSTNode) -> int:
        """The node's place in reading order."""
        return self._number[id(node)]

    def last_number(self, node: cst.CSTNode) -> int:
        """The place in reading order of the last node below this one."""
        return self._last[self._number[id(node)]]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one; None for the module."""
        place = self._parents[self._number[id(node)]]
        return self._nodes[place] if place >= 0 else None

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The node's parent, its parent, up to the module."""
        place = self._parents[self._number[id(node)]]
        while place >= 0:
            yield self._nodes[place]
            place = self._parents[place]

    def enclosing(self, node: cst.CSTNode, *types: type[Node]) -> Node | None:
        """The nearest ancestor of one of the types."""
        return next((above for above in self.ancestors(node) if isinstance(above, types)), None)

    def inside(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether `node` is `outer` or stands below it."""
        first = self._number[id(outer)]
        return first <= self._number[id(node)] <= self._last[first]

    def all(self, node_type: type[Node]) -> list[Node]:
        """Every node of exactly this type, in reading order."""
        return [self._nodes[place] for place in self._by_type.get(node_type, ())]  # type: ignore[misc]

    def first_at(self, line: int, *types: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The first node of these types that begins in a line; None where there is none."""
        here = [node for kind in types for node in self.all(kind) if self.line(node) == line]
        return min(here, key=self.number, default=None)

    def under(self, outer: cst.CSTNode, node_type: type[Node]) -> list[Node]:
        """Every node of exactly this type that is `outer` or below it, in reading order."""
        places = self._by_type.get(node_type, [])
        first = self._number[id(outer)]
        low, high = bisect_left(places, first), bisect_right(places, self._last[first])
        return [cast(Node, self._nodes[place]) for place in places[low:high]]

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The small statement or the compound statement that holds the node."""
        kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
        return next(
            (above for above in (node, *self.ancestors(node)) if isinstance(above, kinds)), self.module
        )


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The expressions and statements directly below a node, without white space and punctuation."""
    below: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            below.append(value)
        elif isinstance(value, (list, tuple)):
            below.extend(value)
    return below


def below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, in no order that matters."""
    todo = [node]
    while todo:
        here = todo.pop()
        yield here
        todo.extend(children(here))


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The names of the fields that may hold nodes; a cache for the hundred or so node types."""
    if kind in _LEAVES:
        return ()
    return tuple(
        name
        for name in kind.__dataclass_fields__
        if name not in _TRIVIA and not name.startswith(("whitespace", "__"))
    )
