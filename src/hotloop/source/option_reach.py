"""Whether a default reaches the expression that has its name, as far as the source shows."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.source.calls import code
from hotloop.source.draft import Editor
from hotloop.source.option import Option
from hotloop.source.source_file import SourceFile
from hotloop.source.targets import names_given, targets


def reaches(source: Editor, path: str, holder: cst.BaseExpression, key: str, option: Option) -> bool:
    """Return whether a default is what `holder.key` gives, and nobody is seen to give another value on the way.

    Args:
        source: the user's files.
        path: of the file with the expression.
        holder: what has the value: `args` of `args.workers`.
        key: its name there.
        option: the default, in whatever file.
    """
    file, name = source.file(path), _last_name(holder)
    around = _class_of(source, option)
    if _is_set_again(file, name, key) or (around is not None and not _is_used_as_it_is(source, around, key)):
        return False
    if name == "self":
        own = file.enclosing(holder, cst.ClassDef)
        return around is not None and own is not None and around.name.value in {own.name.value, *_bases(own)}
    origins = [
        value for target, value in targets(file) if name in names_given(target) and _last_name(value) != name
    ]
    return not origins or any(_may_give(source, origin, option, around) for origin in origins)


def _last_name(node: cst.BaseExpression) -> str:
    """Return the name at the end of `self.args` or of `make_args`; empty: it ends otherwise."""
    last = node.attr if isinstance(node, cst.Attribute) else node
    return last.value if isinstance(last, cst.Name) else ""


def _class_of(source: Editor, option: Option) -> cst.ClassDef | None:
    """Return the class whose attribute the default is; None: it is an argument of a command line, or a key."""
    if option.flags or not isinstance(option.node, cst.CSTNode):
        return None
    file = source.file(option.path)
    return None if file.enclosing(option.node, cst.DictElement) else file.enclosing(option.node, cst.ClassDef)


def _is_set_again(file: SourceFile, name: str, key: str) -> bool:
    """Whether the file gives `name.key`, or `name["key"]`, another value."""
    return any(_keyed(target) == (name, key) for target, _ in targets(file))


def _keyed(target: cst.BaseExpression) -> tuple[str, str] | None:
    if isinstance(target, cst.Attribute):
        return _last_name(target.value), target.attr.value
    if isinstance(target, cst.Subscript):
        return _last_name(target.value), code(target.slice[0].slice).strip("'\"")
    return None


def _is_used_as_it_is(source: Editor, around: cst.ClassDef, key: str) -> bool:
    """Whether the program names a class, and never makes one with another value of the attribute."""
    name = around.name.value
    fields = [
        code(line.body[0].target)
        for line in around.body.body
        if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.AnnAssign)
    ]
    position = fields.index(key) if key in fields else len(fields)
    named = False
    for file in source.draft.files.values():
        named = named or any(_is_use(file, each, name) for each in file.all(cst.Name))
        for call in file.all(cst.Call):
            if _last_name(call.func) == name and _may_give_key(call, key, position):
                return False
            if _last_name(call.func) == "replace" and _names_key(call, key):  # dataclasses.replace
                return False
    return named


def _is_use(file: SourceFile, node: cst.Name, name: str) -> bool:
    return node.value == name and not isinstance(file.parent(node), (cst.ClassDef, cst.ImportAlias))


def _may_give_key(call: cst.Call, key: str, position: int) -> bool:
    by_position = [arg for arg in call.args if arg.keyword is None and not arg.star]
    return _names_key(call, key) or any(arg.star for arg in call.args) or len(by_position) > position


def _names_key(call: cst.Call, key: str) -> bool:
    return any(arg.keyword is not None and arg.keyword.value == key for arg in call.args)


def _may_give(
    source: Editor, origin: cst.BaseExpression, option: Option, around: cst.ClassDef | None
) -> bool:
    """Whether an expression may give what has the default: a call of a library that names nothing of it does not."""
    if isinstance(origin, cst.Dict):
        return isinstance(option.node, cst.CSTNode) and source.file(option.path).inside(option.node, origin)
    if not isinstance(origin, cst.Call):
        return True
    written, function = code(origin), _last_name(origin.func)
    if around is not None and (around.name.value in written or function in _heirs(source, around)):
        return True
    if any(name in written for name in _names_of(source, option)):
        return True
    own = (each.name.value for file in source.draft.files.values() for each in file.all(cst.FunctionDef))
    return "parse" in written or function in own


def _names_of(source: Editor, option: Option) -> Iterator[str]:
    """Return the names of the dictionary that a key stands in."""
    if isinstance(option.node, cst.CSTNode) and not option.flags:
        file = source.file(option.path)
        for target, value in targets(file):
            if isinstance(value, cst.Dict) and file.inside(option.node, value):
                yield from names_given(target)


def _heirs(source: Editor, around: cst.ClassDef) -> set[str]:
    classes = (each for file in source.draft.files.values() for each in file.all(cst.ClassDef))
    return {each.name.value for each in classes if around.name.value in _bases(each)}


def _bases(cls: cst.ClassDef) -> list[str]:
    return [code(arg.value).rpartition(".")[2] for arg in cls.bases]
