"""A program that is started as a command, or a module, of an installed package: its code is that package's."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from importlib.util import find_spec

_LAUNCHERS = frozenset({"torch", "accelerate", "lightning", "pytorch_lightning", "deepspeed", "transformers"})
"""Start programs of others, in processes of their own."""
MAX_BYTES = 64 << 10


def is_start_script(path: str) -> bool:
    """Whether a file is what an installer wrote to start a command."""
    return os.path.dirname(os.path.abspath(path)) == os.path.abspath(sysconfig.get_path("scripts"))


def started_package(script: str) -> str | None:
    """Return the folder of the package that a program is of; None: it is the user's own script.

    Args:
        script: the file that is run: what an installer wrote to start a command, or `__main__` of an installed package.
    """
    before, packages, after = os.path.abspath(script).partition(f"{os.sep}site-packages{os.sep}")
    root = after.split(os.sep)[0]
    if packages and root not in _LAUNCHERS and os.sep in after:
        return f"{before}{packages}{root}{os.sep}"
    if not is_start_script(script):
        return None
    try:
        if os.path.getsize(script) > MAX_BYTES:
            return None
        with open(script, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):  # a binary, which starts something else
        return None
    names = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    roots = [name.split(".")[0] for name in names]
    own = next((root for root in roots if root not in sys.stdlib_module_names | _LAUNCHERS), None)
    return None if own is None else _folder(own)


def _folder(package: str) -> str | None:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return os.path.abspath(places[0]) + os.sep if places else None
