"""The scaler's state in the program's checkpoint code: saved and loaded where the optimizer's is."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.source.calls import code, keyword
from hotloop.source.draft import Editor
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after, line_of

KEY = "scaler"


def state_uses(source: Editor, path: str, optimizer: str) -> list[cst.CSTNode]:
    """Return the calls that save or load the optimizer's state, all of which have to know the scaler.

    Raises:
        CannotEdit: one is in another file, or in a form that no key can be added to.
    """
    found: list[cst.CSTNode] = []
    for other, file in source.draft.files.items():
        for call in _state_calls(file, optimizer):
            where = f"{other}:{file.line(call)}"
            if other != path:
                raise CannotEdit(f"{where} has to know the scaler, which {path} makes, for the checkpoint")
            if _saved_under(file, call) is None and _loaded_from(call) is None:
                raise CannotEdit(f"{where}: the scaler's state cannot be put beside the optimizer's")
            found.append(call)
    return found


def keep_state(source: Editor, path: str, optimizer: str, scaler: str) -> Iterator[str]:
    """Save and load the scaler's state beside the optimizer's; a checkpoint without one can still be loaded."""
    for at in range(len(list(_state_calls(source.file(path), optimizer)))):
        file = source.file(path)
        call = list(_state_calls(file, optimizer))[at]
        yield f"{path}:{file.line(call)}: the scaler's state is in the checkpoint"
        element = _saved_under(file, call)
        if element is not None:
            _save(source, path, element, f"{scaler}.state_dict()")
            continue
        checkpoint = _loaded_from(call)
        text = f'if "{KEY}" in {checkpoint}:\n    {scaler}.load_state_dict({checkpoint}["{KEY}"])\n'
        insert_after(source, path, line_of(file, call), text.replace("    ", file.module.default_indent))


def _state_calls(file: SourceFile, optimizer: str) -> Iterator[cst.Call]:
    methods = {f"{optimizer}.state_dict", f"{optimizer}.load_state_dict"}
    return (call for call in file.all(cst.Call) if code(call.func) in methods)


def _saved_under(file: SourceFile, call: cst.Call) -> cst.DictElement | cst.Arg | None:
    """Return the element of a dictionary that holds the state: `{"optimizer": ...}` or `dict(optimizer=...)`."""
    parent = file.parent(call)
    if isinstance(parent, cst.DictElement):
        return parent
    holder = file.parent(parent) if isinstance(parent, cst.Arg) and parent.keyword is not None else None
    is_dict = isinstance(holder, cst.Call) and code(holder.func) == "dict"
    return parent if is_dict and isinstance(parent, cst.Arg) else None


def _loaded_from(call: cst.Call) -> str | None:
    """Return the checkpoint of `optimizer.load_state_dict(checkpoint["optimizer"])`."""
    if len(call.args) != 1 or not isinstance(call.args[0].value, cst.Subscript):
        return None
    holder = call.args[0].value.value
    return code(holder) if isinstance(holder, (cst.Name, cst.Attribute)) else None


def _save(source: Editor, path: str, element: cst.DictElement | cst.Arg, value: str) -> None:
    """Put the scaler's state behind the optimizer's, on a line of its own where that has one."""
    if isinstance(element, cst.Arg):
        new: cst.CSTNode = keyword(KEY, value).with_changes(comma=element.comma)
    else:
        new = cst.DictElement(cst.SimpleString(f'"{KEY}"'), cst.parse_expression(value), comma=element.comma)
    holder = source.file(path).parent(element)
    assert isinstance(holder, (cst.Dict, cst.Call))
    between = _comma(holder)
    source.change(path, element, lambda element: [element.with_changes(comma=between), new])


def _comma(holder: cst.Dict | cst.Call) -> cst.Comma:
    """Return what stands between two elements: the comma behind one that is not the last."""
    elements = holder.elements if isinstance(holder, cst.Dict) else holder.args
    commas = [each.comma for each in elements[:-1] if isinstance(each.comma, cst.Comma)]
    return commas[0] if commas else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
