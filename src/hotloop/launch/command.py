"""Turn the words that the user typed into a command line that can be started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hotloop.model.errors import HotloopError


def resolve(words: Sequence[str]) -> list[str]:
    """Return the argument vector of the user's command.

    A first word that ends in `.py` is run by the current Python, as `python FILE` would.

    Raises:
        HotloopError: there is no command, no such script, or no such program.
    """
    if not words:
        raise HotloopError(
            "no command was given, so there is nothing to run",
            "put hotloop in front of the command you type: hotloop observe python train.py",
        )
    argv = [sys.executable, *words] if words[0].endswith(".py") else list(words)
    program = shutil.which(argv[0])
    if program is None:
        raise HotloopError(
            f"there is no program {argv[0]!r} on this machine, so the command cannot be run",
            "check the spelling, or give its full path",
        )
    script = script_of(argv)
    if script is not None and not script.exists():
        raise HotloopError(
            f"there is no script {str(script)!r} in {os.getcwd()}, so the command cannot be run",
            "check the path, or change to the folder that holds it",
        )
    return [program, *argv[1:]]


def script_of(argv: Sequence[str]) -> Path | None:
    """Return the first word that names a Python script, or None (`python -m pkg`, console scripts)."""
    if _is_python(argv[0]):
        return _python_script(argv)
    return next((Path(word) for word in argv[1:] if word.endswith(".py") and not word.startswith("-")), None)


def _is_python(program: str) -> bool:
    return Path(program).name.startswith(("python", "pypy"))


def _python_script(argv: Sequence[str]) -> Path | None:
    words = iter(argv[1:])
    for word in words:
        if word in {"-m", "-c", "-"}:
            return None if word != "-m" else _module_script(argv)
        if word in {"-W", "-X"}:
            next(words, None)
        elif not word.startswith("-"):
            return Path(word)
    return None


def _module_script(argv: Sequence[str]) -> Path | None:
    """`python -m torch.distributed.run train.py`: the script behind a launcher module."""
    launchers = {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
    rest = list(argv[argv.index("-m") + 1 :])
    if rest and rest[0] in launchers:
        return next((Path(word) for word in rest[1:] if word.endswith(".py")), None)
    return None


def why_unseen(argv: Sequence[str]) -> str | None:
    """Return which of Python's own options keeps the probe out, as a clause; None: none does."""
    if not _is_python(argv[0]):
        return None
    shut = {"I": "-I isolates Python from its environment", "E": "-E makes Python ignore PYTHONPATH"}
    shut["S"] = "-S keeps Python from running sitecustomize, where the probe starts"
    for word in argv[1:]:
        if not word.startswith("-") or word in {"-", "-m", "-c"} or word.startswith("--"):
            return None
        for letter, reason in shut.items():
            if letter in word and word[1] not in "WX":
                return reason
    return None
