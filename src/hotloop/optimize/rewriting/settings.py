"""Settings of the whole process: changed where the program makes them, else put behind the imports of its main file."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.model.sites import Site
from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, meaning, module_name
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after


def set_flag(source: Editor, sites: tuple[Site, ...], name: str, value: str) -> list[str]:
    """Let an attribute of torch have a value; return a note for each place, none where it has it.

    Args:
        source: the user's files.
        sites: of the observed run.
        name: qualified: `torch.backends.cudnn.benchmark`.
        value: as Python.
    """
    found = [
        (path, node.value) for path, file in source.draft.files.items() for node in _assigned(file, name)
    ]
    if found:
        return _changed(source, found, name, value)
    return _at_the_top(source, main_file(source, sites), name, f" = {value}")


def call_setting(source: Editor, sites: tuple[Site, ...], name: str, value: str) -> list[str]:
    """Let a function of torch be called with one value; return a note for each place, none where it is.

    Args:
        source: the user's files.
        sites: of the observed run.
        name: qualified: `torch.set_float32_matmul_precision`.
        value: as Python.
    """
    found = [
        (path, call.args[0].value)
        for path, file in source.draft.files.items()
        for call in _called(file, name)
    ]
    if found:
        return _changed(source, found, name, value)
    return _at_the_top(source, main_file(source, sites), name, f"({value})")


def main_file(source: Editor, sites: tuple[Site, ...]) -> str:
    """Return the file in which the program begins: that of the outermost frame which is the program's.

    Raises:
        CannotEdit: none is.
    """
    for site in sites:
        for place in reversed(site.places):
            if place.path in source.draft.files:
                return place.path
    raise CannotEdit("no file of the program was seen to run")


def _assigned(file: SourceFile, name: str) -> Iterator[cst.Assign]:
    for node in file.all(cst.Assign):
        if any(meaning(file, target.target) == name for target in node.targets):
            yield node


def _called(file: SourceFile, name: str) -> Iterator[cst.Call]:
    for call in file.all(cst.Call):
        if call.args and meaning(file, call.func) == name:
            yield call


def _changed(source: Editor, found: list[tuple[str, cst.BaseExpression]], name: str, value: str) -> list[str]:
    """Give another value wherever the program gives one: what comes last is in force, and that is not known here."""
    other = [(path, node) for path, node in found if code(node).strip("'\"") != value.strip("'\"")]
    if len(other) > 1:
        raise CannotEdit(f"the program sets {name} in {len(other)} places")
    for path, node in other:
        line = source.file(path).line(node)
        source.change(path, node, lambda _: cst.parse_expression(value))
        return [f"{path}:{line}: {name} is {value}"]
    return []


def _at_the_top(source: Editor, path: str, name: str, rest: str) -> list[str]:
    module, _, attribute = name.partition(".")
    text = f"{module_name(source, path, module)}.{attribute}{rest}"
    file = source.file(path)
    body = list(file.module.body)
    imports = [line for line in (last_import(file), last_import(file, of=module)) if line is not None]
    line = last = max(imports, key=body.index)  # not before the module itself is imported
    for each in body[
        body.index(line) + 1 :
    ]:  # behind the settings that the program, or an earlier step, makes there
        if not (isinstance(each, cst.SimpleStatementLine) and code(each).startswith(f"{module}.")):
            break
        line = each
    insert_after(source, path, line, text, apart=line is last)
    return [f"{path}: {text}"]
