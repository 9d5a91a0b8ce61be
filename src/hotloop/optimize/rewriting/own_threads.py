"""Where a program sets its number of threads by itself: what is set for its command does not last."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hotloop.optimize.program.thread_settings import VARIABLES
from hotloop.optimize.rewriting.outcomes import launched_with
from hotloop.source.draft import Editor
from hotloop.source.outcome import Refused, Rewrite


def launched_with_threads(source: Editor, environment: Mapping[str, str], num_threads: int) -> Rewrite:
    """Return the launch line, or the refusal where the program sets another number later."""
    return refused_threads(source, num_threads) or launched_with(environment)


def refused_threads(source: Editor, num_threads: int) -> Refused | None:
    """Return the refusal where the program sets a number of threads by itself; None: it does not, or the same."""
    for path, file in source.draft.files.items():
        for node in ast.walk(ast.parse(file.module.code)):
            if _sets(node, num_threads):
                line = getattr(node, "lineno", 0)
                return Refused(
                    f"{path}:{line} sets the number of threads, whatever the command is started with",
                    f"torch.set_num_threads({num_threads})",
                )
    return None


def _sets(node: ast.AST, num_threads: int) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and _is_name(target.slice) for target in node.targets)
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if called == "set_num_threads":
        given = [*node.args, *(word.value for word in node.keywords)]
        return not any(isinstance(value, ast.Constant) and value.value == num_threads for value in given)
    in_update = called == "update" and any(word.arg in VARIABLES for word in node.keywords)
    return in_update or (called == "putenv" and any(map(_is_name, node.args)))


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in VARIABLES
