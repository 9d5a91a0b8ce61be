"""Sigmoids kept in fp32 in the user's source: their input is cast, or their module casts it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.model.sites import SiteKind, Sites
from hotloop.source.calls import code, method_call
from hotloop.source.draft import Editor
from hotloop.source.imports import last_import, meaning
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after

CLASS = "FullPrecisionSigmoid"
_FUNCTIONS = frozenset({"torch.sigmoid", "torch.special.expit", "torch.nn.functional.sigmoid"})
_MODULE = "torch.nn.Sigmoid"


def keep_sigmoids_in_fp32(source: Editor, sites: Sites) -> list[str]:
    """Edit every sigmoid that the program's files write out, where some model's output is made of one.

    Returns a note for each, none where all are so already.

    Raises:
        CannotEdit: no file writes one: the model is a library's.
    """
    forwards = sites.of(SiteKind.FORWARD)
    if not any(site.returns is not None and site.returns.ends_in_sigmoid for site in forwards):
        return []
    notes: list[str] = []
    are_so = False
    for path in source.draft.files:
        while (found := next(_open(source.file(path)), None)) is not None:
            notes.append(f"{path}:{source.file(path).line(found)}: the sigmoid is computed in fp32")
            _edit(source, path, found)
        file = source.file(path)
        are_so |= _is_defined(file) or any(_is_cast(_input(file, call)) for call in file.all(cst.Call))
    if not notes and not are_so:
        raise CannotEdit(
            "the output is made of a sigmoid, which has to stay in fp32 and which no file of the program writes out"
        )
    return notes


def _open(file: SourceFile) -> Iterator[cst.Call]:
    for call in file.all(cst.Call):
        given = _input(file, call)
        if meaning(file, call.func) == _MODULE or (given is not None and not _is_cast(given)):
            yield call


def _input(file: SourceFile, call: cst.Call) -> cst.BaseExpression | None:
    """Return what a call computes the sigmoid of; None: it is no such call."""
    if meaning(file, call.func) in _FUNCTIONS:
        return call.args[0].value if call.args and call.args[0].keyword is None else None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "sigmoid" and not call.args:
        return call.func.value
    return None


def _is_cast(given: cst.BaseExpression | None) -> bool:
    return given is not None and code(given).endswith(".float()")


def _edit(source: Editor, path: str, call: cst.Call) -> None:
    given = _input(source.file(path), call)
    if given is not None:
        source.change(path, given, lambda given: method_call(given, "float"))
        return
    base = code(call.func)
    source.change(path, call.func, lambda _: cst.Name(CLASS))
    if not _is_defined(source.file(path)):
        _define(source, path, base)


def _define(source: Editor, path: str, base: str) -> None:
    file = source.file(path)
    last = last_import(file)
    if last is None:
        raise CannotEdit(f"{path} begins without imports")
    tab = file.module.default_indent
    text = (
        f"class {CLASS}({base}):\n"
        f'{tab}"""A probability above 0.998 is 1 in bfloat16."""\n\n'
        f"{tab}def forward(self, x):\n{tab}{tab}return super().forward(x.float())\n"
    )
    insert_after(source, path, last, text, apart=True)


def _is_defined(file: SourceFile) -> bool:
    return any(each.name.value == CLASS for each in file.all(cst.ClassDef))
