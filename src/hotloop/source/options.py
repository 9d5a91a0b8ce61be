"""The options that a program has already: the default in its source that an expression takes its value from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.source.calls import argument, code, with_argument
from hotloop.source.draft import Editor
from hotloop.source.option import Option
from hotloop.source.option_reach import reaches
from hotloop.source.passed import given_to, kept_by_self
from hotloop.source.settings_file import Setting, as_scalar
from hotloop.source.source_file import SourceFile
from hotloop.source.targets import is_global, is_local, targets

HOPS = 4
"""`main` reads an option, hands it to a function, that to a class, and that to the loader."""
_LEADS_ON = (cst.Name, cst.Attribute, cst.Subscript, cst.BooleanOperation)


def option_of(source: Editor, path: str, value: cst.BaseExpression, hops: int = HOPS) -> Option | None:
    """Return the one default that an expression takes its value from; None: there is none, or more than one.

    Looked for are `parser.add_argument("--workers", default=...)`, a field of a dataclass or an attribute of a class of
    settings, a key of a dictionary of literals, a constant at the top of the file, and a key of a configuration file.
    What has the name and is seen to be something else, or to be given another value, is not meant. A parameter is
    followed to the one call that gives it.

    Args:
        source: the user's files.
        path: of the expression's file.
        value: the expression.
        hops: parameters, and names for other names, that are followed.
    """
    if isinstance(value, cst.BooleanOperation):
        return option_of(source, path, value.left, hops)
    if isinstance(value, cst.Name):
        return _named(source, path, value, hops)
    keys = _keys(value)
    if not keys:
        return None
    assert isinstance(value, (cst.Attribute, cst.Subscript))
    kept = kept_by_self(source.file(path), value) if isinstance(value, cst.Attribute) else None
    if kept is not None:
        return _named(source, path, kept, hops)
    written = [
        each for each in _settings(source, keys[-1]) if reaches(source, path, value.value, keys[-1], each)
    ]
    found = [*written, *_configured(source, keys)]
    return found[0] if len(found) == 1 else None


def option_in(source: Editor, holder: cst.BaseExpression, name: str) -> Option | None:
    """Return the one key of a configuration file that `**cfg["loader"]` takes a parameter from; None: there is none."""
    found = list(_configured(source, (*_keys(holder), name)))
    return found[0] if len(found) == 1 and len(_keys(holder)) > 1 else None


def set_option(source: Editor, option: Option, value: str) -> str:
    """Change a default; return a note."""
    if isinstance(option.node, Setting):
        source.set(option.node, value)
        return f"{option.path}:{option.node.line}: {option.node.name}: {as_scalar(value)}"
    line = source.file(option.path).line(option.node)
    if option.flags:
        source.change(option.path, option.node, lambda call: with_argument(call, "default", value))  # type: ignore[arg-type]
        return f"{option.path}:{line}: the default of {option.flags[0]} is {value}"
    source.change(option.path, option.node, lambda _: cst.parse_expression(value))
    return f"{option.path}:{line}: {value}"


def current(option: Option) -> str | None:
    """Return the default as Python; None: it is none that is written."""
    if isinstance(option.node, Setting):
        return option.node.value
    if not option.flags:
        return code(option.node)
    assert isinstance(option.node, cst.Call)
    given = argument(option.node, "default")
    return code(given.value) if given is not None else None


def _keys(value: cst.BaseExpression) -> tuple[str, ...]:
    """Return the names that lead to a setting: `cfg`, `data`, `workers` of `cfg["data"].workers or 0`; (): no such."""
    if isinstance(value, cst.BooleanOperation):
        return _keys(value.left)
    if isinstance(value, cst.Name):
        return (value.value,)
    if isinstance(value, cst.Attribute):
        holder, key = value.value, value.attr.value
    elif isinstance(value, cst.Subscript) and len(value.slice) == 1:
        index = value.slice[0].slice
        text = _text(index.value) if isinstance(index, cst.Index) else None
        if text is None:
            return ()
        holder, key = value.value, text
    else:
        return ()
    return (*_keys(holder), key)


def _configured(source: Editor, keys: tuple[str, ...]) -> Iterator[Option]:
    """Return the settings whose names end as these do, by as many of them as any setting has."""
    known = [setting for file in source.draft.settings.values() for setting in file.settings]
    for first in range(len(keys)):
        found = [setting for setting in known if setting.keys[-len(keys[first:]) :] == keys[first:]]
        if found:
            # A file of one of Hydra's groups does not name the group; the expression does.
            for setting in found:
                named = setting.keys if len(setting.keys) >= len(keys) else keys[1:]
                yield Option(setting.path, setting, (".".join(named),))
            return


def _settings(source: Editor, name: str) -> Iterator[Option]:
    for path, file in source.draft.files.items():
        for call in file.all(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument":
                flags = _flags(call, name)
                if flags:
                    yield Option(path, call, flags)
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


def _named(source: Editor, path: str, name: cst.Name, hops: int) -> Option | None:
    """Return the default that a name has its value from: a parameter's, or a constant at the top of the file."""
    local = is_local(source.file(path), name)
    found = given_to(source, path, name) if local else _constant(source.file(path), name)
    if found is None or not hops:
        return None
    path, value = found
    if code(value) not in ("True", "False", "None") and isinstance(value, _LEADS_ON):
        return option_of(source, path, value, hops - 1)
    return Option(path, value)


def _constant(file: SourceFile, name: cst.Name) -> tuple[str, cst.BaseExpression] | None:
    given = [(target, value) for target, value in targets(file) if is_global(file, target, name.value)]
    if len(given) != 1:
        return None
    target, value = given[0]
    line = file.parent(file.statement(target))
    return (file.path, value) if line is not None and file.parent(line) is file.module else None


def _flags(call: cst.Call, name: str) -> tuple[str, ...]:
    """Return all spellings of the option of an `add_argument` whose value ends up under the name, long ones first."""
    words = [_text(arg.value) or "" for arg in call.args if arg.keyword is None and not arg.star]
    flags = sorted(
        (word for word in words if word.startswith("-")), key=lambda word: not word.startswith("--")
    )
    given = argument(call, "dest")
    default = flags[0].lstrip("-").replace("-", "_") if flags else None
    destination = default if given is None else _text(given.value)
    return tuple(flags) if destination == name and argument(call, "action") is None else ()


def _in_class(file: SourceFile, node: cst.CSTNode) -> bool:
    line = file.parent(node)
    block = file.parent(line) if line is not None else None
    return block is not None and isinstance(file.parent(block), cst.ClassDef)


def _is(target: cst.BaseExpression, name: str) -> bool:
    return isinstance(target, cst.Name) and target.value == name


def _text(node: cst.BaseExpression) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None
