"""The user's files while they are edited: every change makes a new tree, and marked nodes are followed through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import libcst as cst

from hotloop.model.sites import Place
from hotloop.source.outcome import CannotEdit
from hotloop.source.places import expressions_at, places_of
from hotloop.source.settings_file import Setting, SettingsFile, is_settings
from hotloop.source.source_file import SourceFile, below

Node = TypeVar("Node", bound=cst.CSTNode)
_Change = Callable[[Node], cst.CSTNode | Sequence[cst.CSTNode] | None]


@dataclass(frozen=True)
class Draft:
    """A moment of the files; `Editor` goes from one to the next."""

    files: Mapping[str, SourceFile]
    marks: Mapping[Place, cst.CSTNode]
    """The expression that stands at each observed place, wherever edits have taken it."""
    settings: Mapping[str, SettingsFile] = field(default_factory=dict)
    """Files that are not Python and hold the program's settings."""


class Editor:
    """Edits files; one that cannot be read as Python stays as it is, and whatever would edit it says so.

    Args:
        contents: path to the bytes of each file.
        places: what has to be found again after edits.
    """

    def __init__(self, contents: Mapping[str, bytes], places: Sequence[Place]) -> None:
        settings = {path: SettingsFile(path, raw) for path, raw in contents.items() if is_settings(path)}
        files: dict[str, SourceFile] = {}
        self._unread: dict[str, tuple[bytes, str]] = {}
        for path in (path for path in contents if path not in settings):
            try:
                files[path] = _parsed(path, contents[path])
            except (cst.ParserSyntaxError, SyntaxError, UnicodeDecodeError) as error:
                self._unread[path] = contents[path], _why(error)
        marks: dict[Place, cst.CSTNode] = {}
        for path, file in files.items():
            here = [place for place in places if place.path == path]
            marks.update(expressions_at(file, contents[path], here))
        self.draft = Draft(files, marks, settings)

    def file(self, path: str) -> SourceFile:
        """Return a file as it is now.

        Raises:
            CannotEdit: it is not one of the program's own files, or cannot be read.
        """
        if path in self._unread:
            raise CannotEdit(f"{path} cannot be edited: {self._unread[path][1]}")
        if path not in self.draft.files:
            raise CannotEdit(f"{path} cannot be edited: it is not a file of the program")
        return self.draft.files[path]

    def expression(self, place: Place) -> cst.BaseExpression:
        """Return the expression that an observed place is now.

        Raises:
            CannotEdit: no single expression could be made out there.
        """
        self.file(place.path)
        node = self.draft.marks.get(place)
        if node is None:
            raise CannotEdit(f"{place.path}:{place.line}: which expression of the line it is cannot be told")
        assert isinstance(node, cst.BaseExpression)
        return node

    def call(self, place: Place) -> cst.Call:
        """Return the call that stands at an observed place.

        Raises:
            CannotEdit: there is none, or it is something else (an operator, a `with`).
        """
        node = self.expression(place)
        if not isinstance(node, cst.Call):
            raise CannotEdit(f"{place.path}:{place.line} is not written as a call")
        return node

    def line(self, place: Place) -> int:
        """Return the line on which an observed place stands now."""
        return self.file(place.path).line(self.expression(place))

    def change(self, path: str, node: Node, change: _Change[Node]) -> None:
        """Put what `change` makes of a node in its place: another node, several (statements), or None to remove it.

        Marks within a node that goes on being used stay; a mark on a node that is replaced moves to what replaces it.
        """
        file = self.file(path)
        new = change(node)
        moved: dict[int, cst.CSTNode] = {}
        module = _rebuilt(file, node, new, moved)
        if isinstance(new, cst.CSTNode) and not _holds(new, node):
            moved[id(node)] = new
        files = {**self.draft.files, path: SourceFile(path, file.text, module)}
        marks = {
            place: moved.get(id(mark), mark) if place.path == path else mark
            for place, mark in self.draft.marks.items()
        }
        self.draft = replace(self.draft, files=files, marks=marks)

    def content(self, path: str) -> bytes:
        """Return a file's bytes as they are now, in its own encoding and line ends."""
        if path in self.draft.settings:
            return self.draft.settings[path].raw
        if path in self._unread:
            return self._unread[path][0]
        return self.draft.files[path].module.bytes

    def contents(self) -> dict[str, bytes]:
        """Return all files as they are now."""
        return {path: self.content(path) for path in (*self.draft.files, *self.draft.settings, *self._unread)}

    def set(self, setting: Setting, value: str) -> None:
        """Give a setting of a configuration file another value, as Python."""
        changed = self.draft.settings[setting.path].with_value(setting, value)
        self.draft = replace(self.draft, settings={**self.draft.settings, setting.path: changed})

    def places_now(self) -> dict[Place, Place]:
        """Return where the observed places are in the edited files; those that are gone are left out."""
        moved: dict[Place, Place] = {}
        for path, file in self.draft.files.items():
            moved |= places_of(
                file, {place: node for place, node in self.draft.marks.items() if place.path == path}
            )
        return moved


def _why(error: Exception) -> str:
    if isinstance(error, cst.ParserSyntaxError):
        return f"its line {error.raw_line} is no Python that LibCST reads"
    return "its encoding is not what it says"


def _parsed(path: str, raw: bytes) -> SourceFile:
    module = cst.parse_module(raw)
    return SourceFile(path, module.code, module)


def _rebuilt(
    file: SourceFile,
    node: cst.CSTNode,
    new: cst.CSTNode | Sequence[cst.CSTNode] | None,
    moved: dict[int, cst.CSTNode],
) -> cst.Module:
    """Return the module with another node in place of one; only what holds it is made anew."""
    child: cst.CSTNode = node
    for parent in file.ancestors(node):
        rebuilt = _with_child(parent, child, new)
        moved[id(parent)] = rebuilt
        child, new = parent, rebuilt
    assert isinstance(new, cst.Module)
    return new


def _with_child(
    parent: cst.CSTNode, old: cst.CSTNode, new: cst.CSTNode | Sequence[cst.CSTNode] | None
) -> cst.CSTNode:
    for name in parent.__dataclass_fields__:
        value = getattr(parent, name)
        if value is old:
            return parent.with_changes(**{name: new})
        if isinstance(value, (list, tuple)) and any(item is old for item in value):
            news = [] if new is None else [new] if isinstance(new, cst.CSTNode) else list(new)
            items = [each for item in value for each in (news if item is old else [item])]
            return parent.with_changes(**{name: _never_empty(parent, items)})
    raise AssertionError("a parent holds its child")


def _never_empty(parent: cst.CSTNode, items: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """A block needs a statement."""
    if items or not isinstance(parent, cst.IndentedBlock):
        return items
    return [cst.SimpleStatementLine([cst.Pass()])]


def _holds(outer: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a node stands, as the same object, somewhere in another."""
    return any(each is node for each in below(outer))
