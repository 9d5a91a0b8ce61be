"""The packages of a command's own Python: two commands may run in two environments, and neither in ours."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from hotloop.machine.environment.program_python import answer

_LIST = """
import json
from importlib.metadata import distributions
print(json.dumps({one.metadata["Name"]: one.version for one in distributions() if one.metadata["Name"]}))
"""
_VERSION = "from importlib.metadata import version; print(version({name!r}))"


def packages_of(argv: Sequence[str], folder: Path) -> dict[str, str] | None:
    """Return the distributions that a command finds installed, and their versions; None: its Python is not known.

    Args:
        argv: of the command, with the full path of its program; `env` with variables may stand before it.
        folder: that it runs in.
    """
    try:
        found = json.loads(_answer(argv, folder, _LIST) or "")
    except ValueError:
        return None
    return {name: found[name] for name in sorted(found, key=str.lower)}


def version_of(name: str, argv: Sequence[str], folder: Path) -> str | None:
    """Return the version of a distribution as a command finds it; None: it finds none, or its Python is not known.

    Args:
        name: of the distribution.
        argv: of the command, as for `packages_of`.
        folder: that it runs in.
    """
    return (_answer(argv, folder, _VERSION.format(name=name)) or "").strip() or None


def _answer(argv: Sequence[str], folder: Path, code: str) -> str | None:
    """Return what a line of Python prints in the command's Python; None: there is no such Python, or it failed."""
    num = next((at for at, word in enumerate(argv[1:], 1) if "=" not in word), len(argv))
    before, rest = (argv[:num], argv[num:]) if Path(argv[0]).name == "env" else ((), argv)
    python = _python(rest[0]) if rest else None
    if python is None:
        return None
    return answer(python, code, folder, before)


def _python(program: str) -> str | None:
    """Return a program that is a Python, or that of a console script such as `torchrun`."""
    if Path(program).name.startswith("python"):
        return program
    try:
        with open(program, "rb") as file:
            first = file.readline(500)
    except OSError:
        return None
    named = os.fsdecode(first[2:]).strip() if first.startswith(b"#!") else ""
    return named if Path(named).name.startswith("python") else None
