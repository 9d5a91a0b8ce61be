"""A configuration file of the program (YAML or JSON): its plain settings, each of which can be given another value.

Only the value's own characters change. A setting that is not written as `key: value` on one line (a list, a reference,
a text over several lines) is not seen, so it is never edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_LINE = re.compile(
    r"""^(?P<indent>[ ]*)(?P<quote>["']?)(?P<key>[A-Za-z_][\w-]*)(?P=quote)(?P<sep>[ ]*:[ ]*)"""
    r"""(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s#"'{}\[\],&*!|>%@`][^\s#,{}\[\]]*)?(?P<rest>[ ]*,?[ ]*(?:\#.*)?\{?\r?)$"""
)
_CONSTANTS = {"true": "True", "false": "False", "null": "None", "~": "None"}
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?$")


@dataclass(frozen=True)
class Setting:
    """One key with a plain value.

    Attributes:
        path: of the file.
        keys: from the outermost: `("data", "num_workers")`.
        line: 1-based.
        value: as Python: `0`, `True`, `"bf16"`.
    """

    path: str
    keys: tuple[str, ...]
    line: int
    value: str

    @property
    def name(self) -> str:
        """Its own key."""
        return self.keys[-1]


class SettingsFile:
    """A file with settings.

    Args:
        path: of the file.
        raw: its bytes; what is not UTF-8 has no settings that can be edited.
    """

    def __init__(self, path: str, raw: bytes) -> None:
        self.path = path
        self.raw = raw

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """All plain settings, in order."""
        try:
            lines = self.raw.decode().split("\n")
        except UnicodeDecodeError:
            return ()
        return tuple(self._read(lines))

    def _read(self, lines: list[str]) -> Iterator[Setting]:
        above: list[tuple[int, str]] = []
        text_indent: int | None = None  # of a key whose value is a text over several lines
        for number, line in enumerate(lines, 1):
            indent = len(line) - len(line.lstrip(" "))
            if text_indent is not None and (not line.strip() or indent > text_indent):
                continue
            text_indent = indent if re.search(r":\s*[|>][-+\d]*\s*$", line) else None
            found = _LINE.match(line)
            if found is None:
                continue
            above = [each for each in above if each[0] < indent]
            above.append((indent, found["key"]))
            if found["value"]:
                yield Setting(self.path, tuple(key for _, key in above), number, _as_python(found["value"]))

    def with_value(self, setting: Setting, value: str) -> SettingsFile:
        """Return the file with another value for a setting, given as Python."""
        lines = self.raw.decode().split("\n")
        found = _LINE.match(lines[setting.line - 1])
        assert found is not None, "it was read from there"
        line = lines[setting.line - 1]
        lines[setting.line - 1] = line[: found.start("value")] + as_scalar(value) + line[found.end("value") :]
        return SettingsFile(self.path, "\n".join(lines).encode())


def is_settings(path: str) -> bool:
    """Whether a file is one of settings, by its name."""
    return PurePath(path).suffix in _SUFFIXES


def as_scalar(value: str) -> str:
    """Return a Python literal as YAML and JSON write it."""
    return next((scalar for scalar, python in _CONSTANTS.items() if python == value), value)


def _as_python(scalar: str) -> str:
    if scalar.lower() in _CONSTANTS:
        return _CONSTANTS[scalar.lower()]
    if _NUMBER.match(scalar):
        return scalar
    return '"' + scalar.strip("'\"") + '"'
