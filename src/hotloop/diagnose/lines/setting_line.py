"""Where the program asks for what was seen to be on, read by `ast`: a setting has no line of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hotloop.observe.profile.parsed_sources import parsed

_SAYS = {
    "anomaly-mode-on": ("set_detect_anomaly", "detect_anomaly"),
    "profiler-left-on": ("profile",),
    "garbage-collected-in-step": ("collect",),
    "double-precision": ("double", "float64", "set_default_dtype"),
    "oversubscribed-threads": ("set_num_threads",),
    "undersubscribed-threads": ("set_num_threads", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
}
"""Code of a measured finding to the names that ask for it."""


def setting_line(code: str, files: Iterable[str]) -> tuple[str, int] | None:
    """Return the one place in the program's files that asks for what was found; None: there is none, or several."""
    names = _SAYS.get(code, ())
    places = {(path, line) for path in files for line in _lines(path, names)} if names else set()
    return places.pop() if len(places) == 1 else None


def _lines(path: str, names: tuple[str, ...]) -> Iterator[int]:
    tree = parsed(path)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.expr) and _said(node) in names:
            yield node.lineno


def _said(node: ast.expr) -> object:
    """Return a name, or a text: `os.environ["OMP_NUM_THREADS"]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
