"""By what name a file knows torch.nn.functional."""

from __future__ import annotations

import ast

from hotloop.source.draft import Editor
from hotloop.source.imports import global_aliases, module_name
from hotloop.source.source_file import SourceFile


def functional(source: Editor, path: str) -> str:
    """Return the name by which all functions of a file know torch.nn.functional, importing torch where none is."""
    file = source.file(path)
    given = _given_elsewhere(file)
    known = {full: name for name, full in global_aliases(file).items() if name not in given}
    if "torch.nn.functional" in known:
        return known["torch.nn.functional"]
    if "torch.nn" in known:
        return f"{known['torch.nn']}.functional"
    return f"{module_name(source, path, 'torch')}.nn.functional"


def _given_elsewhere(file: SourceFile) -> set[str]:
    """Return the names that somewhere in a file may mean something else: of parameters, variables, other imports."""
    tree = ast.parse(file.module.code)
    names: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.arg):
            names.add(each.arg)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
        elif isinstance(each, (ast.Import, ast.ImportFrom)) and each not in tree.body:
            names |= {one.asname or one.name.split(".")[0] for one in each.names}
    return names
