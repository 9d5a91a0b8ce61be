"""By what name a file knows a module, and imports added where the file has its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst
from libcst.helpers import get_full_name_for_node

from hotloop.source.draft import Editor
from hotloop.source.source_file import SourceFile
from hotloop.source.statements import insert_after, parsed


def aliases(file: SourceFile) -> dict[str, str]:
    """Return what each imported name of a file means: `{"nn": "torch.nn"}`."""
    return dict(_meanings([*file.all(cst.Import), *file.all(cst.ImportFrom)]))


def global_aliases(file: SourceFile) -> dict[str, str]:
    """Return what each name means that is imported at the top level: it is known in every function."""
    lines = [line for line in file.module.body if isinstance(line, cst.SimpleStatementLine)]
    return dict(_meanings(small for line in lines for small in line.body))


def _meanings(statements: Iterable[cst.CSTNode]) -> Iterator[tuple[str, str]]:
    for one in statements:
        if isinstance(one, cst.Import):
            for each in one.names:
                full = get_full_name_for_node(each.name) or ""
                name = each.evaluated_alias or full.split(".")[0]
                yield name, full if each.asname else name
        elif isinstance(one, cst.ImportFrom) and not isinstance(one.names, cst.ImportStar):
            if one.module is None or one.relative:
                continue
            for each in one.names:
                name = each.evaluated_alias or each.evaluated_name
                yield name, f"{get_full_name_for_node(one.module)}.{each.evaluated_name}"


def meaning(file: SourceFile, node: cst.CSTNode) -> str:
    """Return the qualified name that an expression has by the file's imports, else as written; "": none."""
    written = get_full_name_for_node(node) or ""
    head, _, rest = written.partition(".")
    full = aliases(file).get(head, head)
    return f"{full}.{rest}" if rest else full


def module_name(editor: Editor, path: str, module: str) -> str:
    """Return the name by which a file knows a module, importing it where it does not.

    Args:
        editor: the editor.
        path: of the file.
        module: `torch`.
    """
    file = editor.file(path)
    known = next((name for name, full in global_aliases(file).items() if full == module), None)
    if known is not None:
        return known
    if _imports(file, module) and _is_global(file, module.split(".", maxsplit=1)[0]):
        return module
    last = last_import(file)
    if last is None:
        _at_the_top(editor, path, f"import {module}")
    else:
        insert_after(editor, path, last, f"import {module}")
    return module


def _imports(file: SourceFile, module: str) -> bool:
    """Whether a file has `import a.b` of a module, so that it knows it by its whole name."""
    return any(
        each.asname is None and get_full_name_for_node(each.name) == module
        for plain in file.all(cst.Import)
        for each in plain.names
    )


def last_import(file: SourceFile, of: str = "") -> cst.SimpleStatementLine | None:
    """Return the last import of the file's head, before other statements; with `of`, the last one of that package."""
    found = None
    for line in file.module.body:
        imports = isinstance(line, cst.SimpleStatementLine) and isinstance(
            line.body[0], (cst.Import, cst.ImportFrom)
        )
        if imports and (not of or _speaks_of(line, of)):
            assert isinstance(line, cst.SimpleStatementLine)
            found = line
        elif not imports and found is not None and not of:
            break
    return found


def _speaks_of(line: cst.BaseStatement, package: str) -> bool:
    words = cst.Module([]).code_for_node(line).replace(",", " ").split()
    return any(word == package or word.startswith(f"{package}.") for word in words)


def _is_global(file: SourceFile, name: str) -> bool:
    """Whether an import at the top level, not one within a function, gives the name."""
    return import_of(file, name) is not None


def import_of(file: SourceFile, name: str) -> cst.SimpleStatementLine | None:
    """Return the first import at the top level that gives a name; None: none does."""
    for line in file.module.body:
        if isinstance(line, cst.SimpleStatementLine) and name in _names_given(line):
            return line
    return None


def _names_given(line: cst.SimpleStatementLine) -> set[str]:
    names: set[str] = set()
    for small in line.body:
        if isinstance(small, cst.Import):
            names |= {each.evaluated_alias or each.evaluated_name.split(".")[0] for each in small.names}
        elif isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
            names |= {each.evaluated_alias or each.evaluated_name for each in small.names}
    return names


def _at_the_top(editor: Editor, path: str, text: str) -> None:
    """Put a statement behind the docstring and what comes from `__future__`: a file without imports."""

    def put(module: cst.Module) -> cst.Module:
        has_docstring = module.get_docstring() is not None
        at = 1 if has_docstring else 0
        return module.with_changes(
            body=[*module.body[:at], parsed(editor.file(path), text), *module.body[at:]]
        )

    editor.change(path, editor.file(path).module, put)
