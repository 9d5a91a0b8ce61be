"""The modules in the user's folder that given files import, and what those import."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

MOST = 40
"""Files that are looked at: each is parsed for the patch, at about 20 ms."""


def imported(sources: Mapping[str, bytes], folder: Path) -> dict[str, bytes]:
    """Return path to bytes of the Python files below a folder that files import, beside these files themselves."""
    found: dict[str, bytes] = {}
    bases = {folder, *((folder / path).parent for path in sources)}
    todo = list(sources.items())
    while todo and len(found) < MOST:
        path, raw = todo.pop(0)
        for file in _local_modules(raw, folder / path, bases):
            if not file.is_relative_to(folder):
                continue
            name = str(file.relative_to(folder))
            if name not in found and name not in sources and (content := _python(file)) is not None:
                found[name] = content
                todo.append((name, content))
    return found


def _local_modules(raw: bytes, importing: Path, bases: set[Path]) -> Iterator[Path]:
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield from _files(each.name.split("."), bases)
        elif isinstance(node, ast.ImportFrom):
            homes = {importing.parents[node.level - 1]} if node.level else bases
            parts = node.module.split(".") if node.module else []
            yield from _files(parts, homes)
            for each in node.names:
                yield from _files([*parts, each.name], homes)


def _files(parts: list[str], bases: set[Path]) -> Iterator[Path]:
    for base in sorted(bases):
        at = base.joinpath(*parts)
        yield from (file for file in (at.with_suffix(".py"), at / "__init__.py") if parts and file.is_file())


def _python(file: Path) -> bytes | None:
    """Return a file's bytes, if it is Python that can be read."""
    raw = file.read_bytes()
    try:
        ast.parse(raw)
    except (SyntaxError, ValueError):
        return None
    return raw
