"""Which of hotloop's modules are imported inside the user's program, and what they import, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import hotloop

SOURCES = Path(hotloop.__file__).parent
FIRST = ("hotloop.probe", "hotloop.whatif.batch_sizes", "hotloop.whatif.cached_batch")
FIRST += ("hotloop.whatif.loader_alone", "hotloop.whatif.transfer_alone")
"""Imported by the launcher's orders, beside what acts for an optimization."""
ACTS = {"Activation", "Knob", "Bench"}


class Import(NamedTuple):
    """One import statement."""

    of: str
    """The module that is imported."""
    line: int
    at_once: bool
    """Whether it is run when the importing module is."""


def modules_inside() -> dict[str, Path]:
    """Return the modules of the probe, those of what acts, and all that these import."""
    found: dict[str, Path] = {}
    pending = [*(name for first in FIRST for name in _below(first)), *_acting()]
    while pending:
        name = pending.pop()
        file = file_of(name)
        if name in found or file is None:
            continue
        found[name] = file
        pending += [name.rpartition(".")[0]] if "." in name else []
        pending += [each.of for each in imports(file) if each.of.startswith("hotloop")]
    return found


def imports(file: Path) -> Iterator[Import]:
    """Yield what a module imports; what is for type checkers alone is left out."""
    yield from _imports(ast.parse(file.read_text()).body, at_once=True)


def file_of(name: str) -> Path | None:
    """Return the file of one of hotloop's modules; None: it is none."""
    place = SOURCES.parent.joinpath(*name.split("."))
    return next((one for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file()), None)


def _imports(body: list[ast.stmt], *, at_once: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield Import(node.module, node.lineno, at_once)
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (Import(name, node.lineno, at_once) for name in inner if file_of(name))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imports(node.orelse, at_once=at_once)
        else:
            later = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _imports(getattr(node, field, []), at_once=at_once and not later)


def _below(name: str) -> Iterator[str]:
    file = file_of(name)
    assert file is not None
    for each in file.parent.rglob("*.py") if file.name == "__init__.py" else [file]:
        inner = each.relative_to(SOURCES.parent).with_suffix("").parts
        yield ".".join(inner[:-1] if inner[-1] == "__init__" else inner)


def _acting() -> Iterator[str]:
    """Yield the modules that hold a class of what acts."""
    trees = {name: ast.parse(file.read_text()) for name in _below("hotloop") if (file := file_of(name))}
    classes = {
        (name, node.name): {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    acts = set(ACTS)
    while more := {cls for (_, cls), bases in classes.items() if bases & acts} - acts:
        acts |= more
    yield from {name for name, cls in classes if cls in acts}
