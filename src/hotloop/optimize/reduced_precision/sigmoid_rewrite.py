"""Sigmoids kept in fp32 in the user's source: their input is cast, or their module casts it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.model.sites import SiteKind, Sites
from hotloop.source.calls import code, method_call
from hotloop.source.draft import Editor
from hotloop.source.imports import import_of, last_import, meaning
from hotloop.source.outcome import CannotEdit
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after

CLASS = "FullPrecisionSigmoid"
_FUNCTIONS = frozenset({"torch.sigmoid", "torch.special.expit", "torch.nn.functional.sigmoid"})
_MODULE = "torch.nn.Sigmoid"
_CASTS = (".float()", ".double()")


def keep_sigmoids_in_fp32(source: Editor, sites: Sites) -> list[str]:
    """Edit every sigmoid that the program's files write out, where some model's output is made of one.

    Returns a note for each, none where all are so already.

    Raises:
        CannotEdit: no class writes one (the model is a library's), or one is written in a way that cannot be edited.
    """
    ends = {site.returns.ends_in_sigmoid for site in sites.of(SiteKind.FORWARD) if site.returns is not None}
    if ends <= {False}:
        return []
    notes: list[str] = []
    of_models = False
    for path in source.draft.files:
        of_models |= any(_is_of_a_model(source.file(path), call) for call in source.file(path).all(cst.Call))
        while (found := next(_open(source.file(path)), None)) is not None:
            notes.append(f"{path}:{source.file(path).line(found)}: the sigmoid is computed in fp32")
            _edit(source, path, found)
        _check_all(source.file(path))
    if True in ends and not of_models:
        raise CannotEdit(
            "the output is made of a sigmoid, which has to stay in fp32 and which no class of the program writes out"
        )
    return notes


def _open(file: SourceFile) -> Iterator[cst.Call]:
    for call in file.all(cst.Call):
        given = _input(file, call)
        if _makes_module(file, call) or (given is not None and not _is_cast(given)):
            yield call


def _makes_module(file: SourceFile, call: cst.Call) -> bool:
    # The full name of a call is that of what it calls: `nn.Sigmoid()(x)` is none itself.
    return isinstance(call.func, (cst.Name, cst.Attribute)) and meaning(file, call.func) == _MODULE


def _input(file: SourceFile, call: cst.Call) -> cst.BaseExpression | None:
    """Return what a call computes the sigmoid of; None: it is no such call."""
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    if meaning(file, call.func) in _FUNCTIONS:
        plain = call.args and call.args[0].keyword is None and not call.args[0].star
        return call.args[0].value if plain else None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "sigmoid" and not call.args:
        return None if _is_no_tensor(file, call.func.value) else call.func.value
    return None


def _is_no_tensor(file: SourceFile, receiver: cst.BaseExpression) -> bool:
    """Whether `receiver.sigmoid()` is a method of the program's own, or a module's function."""
    written = code(receiver)
    is_name = isinstance(receiver, (cst.Name, cst.Attribute))
    return written in {"self", "cls", "super()"} or (is_name and meaning(file, receiver) != written)


def _is_cast(given: cst.BaseExpression) -> bool:
    return code(given).endswith(_CASTS)


def _is_of_a_model(file: SourceFile, call: cst.Call) -> bool:
    """Whether a call is, or makes, a sigmoid of a model: a module, or one within a class."""
    if _makes_module(file, call) or (isinstance(call.func, cst.Name) and call.func.value == CLASS):
        return True
    within = any(isinstance(above, cst.ClassDef) for above in file.ancestors(call))
    return within and _input(file, call) is not None


def _edit(source: Editor, path: str, call: cst.Call) -> None:
    given = _input(source.file(path), call)
    if given is not None:
        source.change(path, given, lambda given: method_call(given, "float"))
        return
    if not any(each.name.value == CLASS for each in source.file(path).all(cst.ClassDef)):
        _define(source, path, code(call.func))
        call = next(each for each in _open(source.file(path)) if _makes_module(source.file(path), each))
    source.change(path, call.func, lambda _: cst.Name(CLASS))


def _define(source: Editor, path: str, base: str) -> None:
    """Put the class behind the imports of the file's head, or behind the one that its base comes from.

    Raises:
        CannotEdit: that is imported elsewhere, or nowhere.
    """
    file = source.file(path)
    head = base.partition(".")[0]
    given, last, lines = import_of(file, head), last_import(file), list(file.module.body)
    if given is None:
        raise CannotEdit(f"{path} does not import {head} at its top")
    line = last if last is not None and lines.index(last) > lines.index(given) else given
    tab = file.module.default_indent
    text = (
        f"class {CLASS}({base}):\n"
        f'{tab}"""A probability above 0.998 is 1 in bfloat16."""\n\n'
        f"{tab}def forward(self, x):\n{tab}{tab}return x.float().sigmoid()\n"
    )
    insert_after(source, path, line, text, apart=True)


def _check_all(file: SourceFile) -> None:
    """Look for sigmoids that are written otherwise: handed on by name, in place, by keyword.

    Raises:
        CannotEdit: with the line.
    """
    handled = {id(call.func) for call in file.all(cst.Call) if _input(file, call) is not None}
    for node in (*file.all(cst.Attribute), *file.all(cst.Name)):
        if id(node) in handled or isinstance(file.parent(node), (cst.Attribute, cst.ImportAlias)):
            continue
        known = meaning(file, node) in {*_FUNCTIONS, _MODULE} and not _is_base(file, node)
        star = isinstance(node, cst.Name) and meaning(file, node) == "Sigmoid"
        in_place = isinstance(node, cst.Attribute) and node.attr.value == "sigmoid_"
        if known or star or in_place:
            raise CannotEdit(
                f"{file.path}:{file.line(node)} writes a sigmoid that has to stay in fp32 in a way that is not edited"
            )


def _is_base(file: SourceFile, node: cst.CSTNode) -> bool:
    """Whether it is the class that the one in fp32 is made from."""
    above = next((each for each in file.ancestors(node) if isinstance(each, cst.ClassDef)), None)
    return above is not None and above.name.value == CLASS
