"""`[tool.hotloop.lint]` of pyproject.toml."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.lint.check.registry import known_names
from hotloop.lint.read.discover import is_excluded
from hotloop.model.errors import ExitCode, HotloopError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class LintConfig:
    """What a project wants from the rules."""

    select: tuple[str, ...] = ()
    """Codes and families to look for; empty means all."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Patterns of files and folders that are not read."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Pattern of files to the codes that are ignored in them."""

    def ignored_in(self, path: str) -> frozenset[str]:
        """The codes that `per-file-ignores` switches off in one file."""
        return frozenset(
            code
            for pattern, codes in self.per_file_ignores.items()
            if is_excluded(path, [pattern])
            for code in codes
        )


_KEYS = {"select", "ignore", "exclude", "per-file-ignores"}


def find_config(start: Path) -> LintConfig:
    """The configuration of the nearest pyproject.toml at or above `start`, or the default."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return read_config(file)
    return LintConfig()


def read_config(file: Path) -> LintConfig:
    """Read and check the table.

    Raises:
        HotloopError: the file is no TOML, or the table holds an unknown key, code or type.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (
        ValueError,
        RecursionError,
    ) as error:  # ValueError: no TOML, no UTF-8, numbers of thousands of digits
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HotloopError(f"{file} cannot be read as TOML ({why}).", "Correct the file.") from error
    except OSError as error:
        raise HotloopError(
            f"{file} cannot be read ({error.strerror}).", "Correct its permissions.", ExitCode.MACHINE
        ) from error
    table: object = document
    for place, key in enumerate(("tool", "hotloop", "lint")):
        table = table.get(key, {}) if isinstance(table, dict) else table
        if not isinstance(table, dict):
            name = ".".join(("tool", "hotloop", "lint")[: place + 1])
            raise HotloopError(f"{file}: {name} is {_shown(table)} and no table.", f"Write [{name}].")
    assert isinstance(table, dict)
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise HotloopError(
            f"{file}: [tool.hotloop.lint] has no key {unknown[0]!r}, so it would have no effect.",
            f"Known keys: {', '.join(sorted(_KEYS))}.",
        )
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise HotloopError(f"{file}: per-file-ignores is not a table.", 'Write "tests/*" = ["sync-in-step"].')
    return LintConfig(
        select=check_names(_strings(file, table, "select")),
        ignore=check_names(_strings(file, table, "ignore")),
        exclude=_strings(file, table, "exclude"),
        per_file_ignores={pattern: check_names(_strings(file, per_file, pattern)) for pattern in per_file},
    )


def _shown(value: object) -> str:
    """A value in a message, cut short; numbers of thousands of digits have no decimal form in Python."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too long to show"


def _strings(file: Path, table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise HotloopError(
            f"{file}: {key} is {_shown(value)}, and should be a list of strings.", f'Write {key} = ["..."].'
        )
    return tuple(value)


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if each is a rule's code or a family.

    Raises:
        HotloopError: one is neither.
    """
    unknown = [name for name in names if name not in known_names()]
    if unknown:
        raise HotloopError(
            f"There is no rule or family {unknown[0]!r}, so it can be neither selected nor ignored.",
            "`hotloop explain` lists them all.",
        )
    return tuple(names)
