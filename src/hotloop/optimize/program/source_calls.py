"""Calls in the files of an observed program, read from its source."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hotloop.model.deep import Deep
from hotloop.model.observation import Observation
from hotloop.model.program import ModuleFacts


def program_files(observation: Observation) -> Iterator[tuple[str, str]]:
    """Return path and text of each file that the program was seen to run."""
    roots = [path for root in observation.program.roots for path in root.code_files]
    paths = [*observation.sites.sources, *roots, *_profiled(observation.deep)]
    yield from _read({os.path.abspath(path): path for path in reversed(paths)}.values())


def model_texts(*roots: ModuleFacts) -> Iterator[str]:
    """Return the text of each file that the models' own code stands in."""
    for _, text in _read(dict.fromkeys(path for root in roots for path in root.code_files)):
        yield text


def _read(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return path and text of those that can be read."""
    for path in paths:
        try:
            yield path, Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue


def _profiled(deep: Deep | None) -> list[str]:
    """Return the files with lines of the user's that the profilers saw: a loss may stand in one of its own."""
    host = deep.host.lines if deep is not None and deep.host is not None else ()
    sites = deep.call_sites.sites if deep is not None and deep.call_sites is not None else ()
    return [*(line.path for line in host if line.process == "train"), *(site.path for site in sites)]


def calls_of(observation: Observation, method: str) -> Iterator[tuple[str, ast.Call]]:
    """Return path and call of each call of this name, of a method or of a function."""
    for path, text in program_files(observation):
        if method not in text:
            continue
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and method in (
                getattr(node.func, "attr", None),
                getattr(node.func, "id", None),
            ):
                yield path, node


def says_foreach(call: ast.Call) -> bool | None:
    """Return what a call says of `foreach`; None: nothing, or nothing that can be read."""
    given = [word.value for word in call.keywords if word.arg == "foreach"]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return value if isinstance(value, bool) else None


def keeps_gradients(call: ast.Call) -> bool:
    """Whether a call of `zero_grad` is written so that gradients stay, as zeros."""
    words = [word.value for word in call.keywords if word.arg == "set_to_none"]
    given = words or call.args[:1]
    return any(isinstance(value, ast.Constant) and value.value is False for value in given)
