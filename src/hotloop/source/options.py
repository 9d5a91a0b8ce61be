"""The options that a program has already: the default in its source that an expression takes its value from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from hotloop.source.calls import argument, code, with_argument
from hotloop.source.draft import Editor
from hotloop.source.source_file import SourceFile


@dataclass(frozen=True)
class Option:
    """A default in the source.

    Attributes:
        path: of the file.
        node: the value as it is written; of an `add_argument` without a default, the call.
        flag: of the command line: `--workers`; empty: it has none.
    """

    path: str
    node: cst.BaseExpression
    flag: str = ""


def option_of(source: Editor, path: str, value: cst.BaseExpression) -> Option | None:
    """Return the one default that an expression takes its value from; None: there is none, or more than one.

    Looked for are `parser.add_argument("--workers", default=...)`, a field of a dataclass or an attribute of a class of
    settings, a key of a dictionary of literals, and a constant at the top of the file.
    """
    name = _name(value)
    if name is None:
        return None
    found = list(_constants(source, path, name) if isinstance(value, cst.Name) else _settings(source, name))
    return found[0] if len(found) == 1 else None


def set_option(source: Editor, option: Option, value: str) -> str:
    """Change a default; return a note."""
    line = source.file(option.path).line(option.node)
    if option.flag:
        source.change(option.path, option.node, lambda call: with_argument(call, "default", value))  # type: ignore[arg-type]
        return f"{option.path}:{line}: the default of {option.flag} is {value}"
    source.change(option.path, option.node, lambda _: cst.parse_expression(value))
    return f"{option.path}:{line}: {value}"


def current(option: Option) -> str | None:
    """Return the default as it is written; None: it is none that is written."""
    if not option.flag:
        return code(option.node)
    assert isinstance(option.node, cst.Call)
    given = argument(option.node, "default")
    return code(given.value) if given is not None else None


def _name(value: cst.BaseExpression) -> str | None:
    if isinstance(value, cst.BooleanOperation):  # args.workers or 0
        return _name(value.left)
    if isinstance(value, cst.Name):
        return value.value
    if isinstance(value, cst.Attribute):
        return value.attr.value
    if (
        isinstance(value, cst.Subscript)
        and len(value.slice) == 1
        and isinstance(value.slice[0].slice, cst.Index)
    ):
        return _text(value.slice[0].slice.value)
    return None


def _settings(source: Editor, name: str) -> Iterator[Option]:
    for path, file in source.draft.files.items():
        for call in file.all(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument":
                flag = _flag(call, name)
                if flag is not None:
                    yield Option(path, call, flag)
        for field in file.all(cst.AnnAssign):
            if _is(field.target, name) and field.value is not None and _in_class(file, field):
                yield Option(path, field.value)
        for assign in file.all(cst.Assign):
            if any(_is(target.target, name) for target in assign.targets) and _in_class(file, assign):
                yield Option(path, assign.value)
        for element in file.all(cst.DictElement):
            if _text(element.key) == name and isinstance(
                element.value, (cst.Integer, cst.SimpleString, cst.Name)
            ):
                yield Option(path, element.value)


def _constants(source: Editor, path: str, name: str) -> Iterator[Option]:
    file = source.file(path)
    for assign in file.all(cst.Assign):
        line = file.parent(assign)
        is_global = line is not None and file.parent(line) is file.module
        if is_global and any(_is(target.target, name) for target in assign.targets):
            yield Option(path, assign.value)


def _flag(call: cst.Call, name: str) -> str | None:
    """Return the long option of an `add_argument` whose value ends up under the name."""
    words = [_text(arg.value) or "" for arg in call.args if arg.keyword is None and not arg.star]
    long = next((word for word in words if word.startswith("--")), "")
    given = argument(call, "dest")
    destination = _text(given.value) if given is not None else long.lstrip("-").replace("-", "_")
    return long if long and destination == name and argument(call, "action") is None else None


def _in_class(file: SourceFile, node: cst.CSTNode) -> bool:
    line = file.parent(node)
    block = file.parent(line) if line is not None else None
    return block is not None and isinstance(file.parent(block), cst.ClassDef)


def _is(target: cst.BaseExpression, name: str) -> bool:
    return isinstance(target, cst.Name) and target.value == name


def _text(node: cst.BaseExpression) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None
