"""Where a name that a statement gives is known."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hotloop.source.source_file import SourceFile

_SKIPPABLE = (cst.If, cst.Else, cst.For, cst.While, cst.Try, cst.ExceptHandler, cst.Match, cst.MatchCase)
"""A statement in one of them may not have run where the name is used outside of it."""


def sees(file: SourceFile, use: cst.CSTNode, line: cst.CSTNode) -> bool:
    """Whether a name that is given behind a statement is known, and given, where it is used.

    A use in a function sees what the functions around it, and the module, have given.
    """
    above_use = {id(each) for each in file.ancestors(use)}
    scope = next(iter(_scopes(file, line)), file.module)
    if not isinstance(scope, (cst.Module, cst.FunctionDef)) or id(scope) not in above_use:
        return False
    for above in file.ancestors(line):
        if above is scope:
            return True
        if isinstance(above, _SKIPPABLE) and id(above) not in above_use and not _is_main(above):
            return False
    return True


def _scopes(file: SourceFile, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    return (above for above in file.ancestors(node) if isinstance(above, (cst.FunctionDef, cst.ClassDef)))


def _is_main(node: cst.CSTNode) -> bool:
    """Whether it is `if __name__ == "__main__":`."""
    return isinstance(node, cst.If) and "__name__" in cst.Module([]).code_for_node(node.test)
