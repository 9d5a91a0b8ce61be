"""The configuration files that a program reads, as far as its source and its command line name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hotloop.source.settings_file import is_settings

_LITERAL = re.compile(rb"""["']([^"'\n]{1,200}\.(?:ya?ml|json))["']""")
_HYDRA = re.compile(rb"""hydra\.main\(([^)]*)\)""")
_DEFAULT = re.compile(r"""^\s*-\s*(?:override\s+)?([\w/]+)\s*:\s*([\w.-]+)\s*$""", re.MULTILINE)
LARGEST_BYTES = 200_000
"""What is larger is data."""


def configurations(sources: Mapping[str, bytes], command: Sequence[str], folder: Path) -> dict[str, bytes]:
    """Return path to bytes of the files below the folder.

    Args:
        sources: path to bytes of the program's own Python files.
        command: the program's command line, with Hydra's overrides of groups.
        folder: the user's.
    """
    named = [*_of_command(command, folder)]
    for path, raw in sources.items():
        beside = (folder / path).parent
        named += [base / name.decode() for name in _LITERAL.findall(raw) for base in (folder, beside)]
        for call in _HYDRA.findall(raw):
            named += _of_hydra(call.decode(), beside, command)
    return {
        str(file.resolve().relative_to(folder.resolve())): file.read_bytes()
        for file in dict.fromkeys(named)
        if _is_one(file, folder)
    }


def _of_command(command: Sequence[str], folder: Path) -> Iterator[Path]:
    for word in command:
        name = word.rpartition("=")[2]
        if is_settings(name):
            yield folder / name


def _of_hydra(call: str, beside: Path, command: Sequence[str]) -> Iterator[Path]:
    """Return the primary configuration and the option of each group in its defaults, or in the command line."""
    words = dict(re.findall(r"""(config_path|config_name)\s*=\s*["']([^"']*)["']""", call))
    if "config_name" not in words:
        return
    home = beside / words.get("config_path", ".")
    primary = home / f"{words['config_name'].removesuffix('.yaml')}.yaml"
    yield primary
    if primary.is_file():
        chosen = dict(word.split("=", 1) for word in command if "=" in word)
        for group, option in _DEFAULT.findall(primary.read_text(errors="replace")):
            yield home / group / f"{chosen.get(group, option).removesuffix('.yaml')}.yaml"


def _is_one(file: Path, folder: Path) -> bool:
    if not file.is_file() or not is_settings(file.name) or file.stat().st_size > LARGEST_BYTES:
        return False
    return file.resolve().is_relative_to(folder.resolve())
