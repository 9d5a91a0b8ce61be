"""Where the program asks for what was seen to be on, read by `ast`: a setting has no line of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hotloop.observe.profile.parsed_sources import parsed

_SAYS = {
    "anomaly-mode-on": ("set_detect_anomaly", "detect_anomaly"),
    "profiler-left-on": ("profile",),
    "garbage-collected-in-step": ("collect",),
    "double-precision": ("set_default_dtype", "double", "float64"),
    "oversubscribed-threads": ("set_num_threads",),
    "undersubscribed-threads": ("set_num_threads", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
}
"""Code of a measured finding to the names that ask for it, the ones that settle it first."""


def setting_line(code: str, files: Iterable[str]) -> tuple[str, int] | None:
    """Return the first place in the program's files that asks for what was found; None: there is none.

    Args:
        code: of the finding.
        files: of the program, its script first.
    """
    names = _SAYS.get(code, ())
    places = [
        (names.index(name), order, line, path)
        for order, path in enumerate(files)
        for name, line in _said_in(path, names)
    ]
    _, _, line, path = min(places, default=(0, 0, 0, ""))
    return (path, line) if path else None


def _said_in(path: str, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield each of some names that a file says, with its line."""
    tree = parsed(path)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.expr) and (said := _said(node)) in names:
            yield str(said), node.lineno


def _said(node: ast.expr) -> object:
    """Return a name, or a text: `os.environ["OMP_NUM_THREADS"]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
