"""A small class or function put into the user's source, behind its imports."""

from __future__ import annotations

import libcst as cst

from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, module_name
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import parsed

_MODULES = {
    "torch": "torch",
    "copy": "copy",
    "futures": "concurrent.futures",
    "image": "PIL.Image",
    "simplejpeg": "simplejpeg",
    "io": "io",
}


def define(source: Editor, path: str, name: str, text: str) -> None:
    """Put a class or function behind the imports, unless it is there.

    Args:
        source: the user's files.
        path: of the file.
        name: of the class.
        text: of the class; `{torch}` stands for the name by which the file knows torch, and so for other modules.

    Raises:
        CannotEdit: the file means something else by the name.
    """
    file = source.file(path)
    defined = {each.name.value for each in file.all(cst.ClassDef)}
    if name in defined | {each.name.value for each in file.all(cst.FunctionDef)}:
        return
    if any(each.value == name for each in file.all(cst.Name) if not _is_called(file, each)):
        raise CannotEdit(f"{path} uses the name {name} for something else")
    modules = {
        word: module_name(source, path, module) for word, module in _MODULES.items() if f"{{{word}}}" in text
    }
    line = last_import(source.file(path))
    assert line is not None  # torch's, at least
    new = parsed(source.file(path), text.format(**modules))
    source.change(path, source.file(path).module, lambda module: _behind(module, line, new))


def _is_called(file: SourceFile, name: cst.Name) -> bool:
    """A call of it may have been put in before."""
    above = file.parent(name)
    return isinstance(above, cst.Call) and above.func is name


def _behind(module: cst.Module, line: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    """Put a class behind a statement, two empty lines around it."""
    at = next(number for number, each in enumerate(module.body) if each is line) + 1
    following = module.body[at : at + 1]
    empty = [cst.EmptyLine(indent=False)] * 2
    apart = [_apart(each) for each in following]
    return module.with_changes(
        body=[*module.body[:at], new.with_changes(leading_lines=empty), *apart, *module.body[at + 1 :]]
    )


def _apart(statement: cst.BaseStatement) -> cst.BaseStatement:
    lines = list(getattr(statement, "leading_lines", ()))
    while lines and lines[0].comment is None:
        lines.pop(0)
    return statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2 + lines)
