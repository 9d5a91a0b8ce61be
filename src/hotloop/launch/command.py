"""Turn the words that the user typed into a command line that can be started."""

from __future__ import annotations

import difflib
import itertools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hotloop.machine.environment.program_python import answer, python_with_torch
from hotloop.model.errors import HotloopError

_SETS = re.compile(r"[A-Za-z_]\w*=")


def resolve(words: Sequence[str]) -> list[str]:
    """Return the argument vector of the user's command.

    A first word that ends in `.py` is run by Python, as `python FILE` would: hotloop's own, or where that has no torch
    the one that `python` means here. Variables before the command
    (`X=1 python train.py`) are set by `env`, as a shell would; a command in one quoted word is taken apart.

    Raises:
        HotloopError: there is no command, no such script, or no such program.
    """
    if not words:
        raise HotloopError(
            "no command was given, so there is nothing to run",
            "put it in front of the command that you type, such as python train.py",
        )
    variables, rest = _variables(_one_word_apart(words))
    if not rest:
        raise HotloopError(
            f"there is no command after {variables[-1]!r}, so there is nothing to run",
            f"put the command behind it: {variables[-1]} python train.py",
        )
    argv = [python_with_torch() or sys.executable, *rest] if rest[0].endswith(".py") else list(rest)
    program = shutil.which(argv[0])
    if program is None:
        raise _no_program(argv[0])
    script = script_of(argv)
    if script is not None and not script.exists():
        raise _no_script(script)
    env = [shutil.which("env") or "env", *variables] if variables else []
    return [*env, program, *argv[1:]]


def _no_program(word: str) -> HotloopError:
    if not Path(word).is_file():
        return HotloopError(
            f"there is no program {word!r} on this machine, so the command cannot be run",
            "check the spelling, or give its full path",
        )
    way = f"put what runs it in front: bash {shlex.quote(word)}"
    if word.endswith(".ipynb"):
        way = f"write it as a script first: jupyter nbconvert --to script {shlex.quote(word)}"
    return HotloopError(f"{word!r} is a file that cannot be executed, so the command cannot be run", way)


def _no_script(script: Path) -> HotloopError:
    beside = [path.name for path in script.parent.glob("*.py")]
    close = difflib.get_close_matches(script.name, beside, n=1)
    meant = f"did you mean {script.with_name(close[0])}? " if close else ""
    return HotloopError(
        f"there is no script {str(script)!r} in {os.getcwd()}, so the command cannot be run",
        f"{meant}check the path, or change to the folder that holds it",
    )


def _one_word_apart(words: Sequence[str]) -> list[str]:
    """Take a command apart that was quoted as a whole, as hyperfine wants it."""
    if len(words) > 1 or not any(blank in words[0] for blank in " \t") or Path(words[0]).exists():
        return list(words)
    return shell_words(words[0])


def shell_words(text: str) -> list[str]:
    """Return the words of a command line as a shell takes it apart; by blanks where a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()


def _variables(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words in front that set a variable, and the command behind them."""
    num = next((at for at, word in enumerate(words) if not _SETS.match(word)), len(words))
    return list(words[:num]), list(words[num:])


def script_of(argv: Sequence[str]) -> Path | None:
    """Return the first word that names a Python script, or the file of `-m pkg.train`; None: neither is to be seen."""
    argv = _behind_env(argv)
    if _is_python(argv[0]):
        return _python_script(argv)
    for word in argv[1:]:
        if word.endswith(".py") and not word.startswith("-") and " " not in word:
            return Path(word)
        inner = _script_within(word) if " " in word else None
        if inner is not None:
            return inner
    return _module_file(argv[1:])


def _script_within(text: str) -> Path | None:
    """Return the script in a command that is an argument: `sh -c "python train.py"`; None: not to be seen from here."""
    names = (word for word in shell_words(text) if word.endswith(".py") and not word.startswith("-"))
    return next((Path(name) for name in names if Path(name).exists()), None)


def _behind_env(argv: Sequence[str]) -> Sequence[str]:
    if Path(argv[0]).name != "env":
        return argv
    return _variables(argv[1:])[1] or argv


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
    """`python -m torch.distributed.run train.py`: the script behind a launcher module; else the module's own file."""
    launchers = {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
    rest = list(argv[argv.index("-m") + 1 :])
    if rest and rest[0] in launchers:
        found = next((Path(word) for word in rest[1:] if word.endswith(".py")), None)
        return found or _module_file(rest[1:])
    return _module_file(argv)


def _module_file(words: Sequence[str]) -> Path | None:
    """Return the file of a module that is run from the folder: `-m pkg.train`, `torchrun -m pkg.train`."""
    named = [after for word, after in itertools.pairwise(words) if word in {"-m", "--module"}]
    if not named:
        return None
    path = Path(*named[0].split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__main__.py")
    return next((one for one in candidates if one.is_file()), None)


def why_unseen(argv: Sequence[str]) -> str | None:
    """Return which of Python's own options keeps the probe out, as a clause; None: none does."""
    argv = _behind_env(argv)
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


def lacks_torch(argv: Sequence[str]) -> bool:
    """Whether the Python that a command names cannot import torch; False where the command names none."""
    argv = _behind_env(argv)
    if not _is_python(argv[0]):
        return False
    look = "import importlib.util; print(importlib.util.find_spec('torch') is None)"
    return (answer(argv[0], look, Path.cwd()) or "").strip() == "True"
