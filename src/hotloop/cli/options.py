"""Options and their units that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from hotloop.cli.files import STDOUT, check_writable, text_aside
from hotloop.launch.isolation.decide import Exceptions
from hotloop.report.terminal.screen import Screen

NewScreen = Callable[..., Screen]
"""Makes the screen of a command with --quiet and --no-color as asked for."""

COMMAND_SETTINGS: dict[str, Any] = {
    # Everything from the first word that is not one of our options is the user's.
    "ignore_unknown_options": False,
    "allow_interspersed_args": False,
    "help_option_names": ["-h", "--help"],
}
_NUMBER = r"\d+(?:\.\d+)?"
_PART = rf"({_NUMBER})\s*(ms|[smh])\s*"
_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Number(click.FloatRange):
    """A number of a range; `nan`, which is in every range, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return it."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value} is no number", param, ctx)
        return found


class TimeSpan(click.ParamType):  # type: ignore[type-arg]  # not generic in every version
    """`90`, `90s`, `10m`, `4m30s`, `1h` or `50ms`, in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds; fail with what is allowed."""
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value).strip()
        text = f"{text}s" if re.fullmatch(_NUMBER, text) else text
        seconds = sum(float(amount) * _UNITS_S[unit] for amount, unit in re.findall(_PART, text))
        if not re.fullmatch(f"(?:{_PART})+", text) or seconds <= 0:
            self.fail(f"{value!r} is not a time; write 90, 90s, 10m, 4m30s, 1h or 50ms", param, ctx)
        return seconds


_SIZE_UNITS = {
    f"{prefix}{unit}": base ** (1 + "kmgt".index(prefix))
    for unit, base in (("b", 1000), ("ib", 1024))
    for prefix in "kmgt"
}


class Size(click.ParamType):  # type: ignore[type-arg]  # likewise
    """`24GB` or `512MiB`, in bytes."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return bytes; fail with what is allowed."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b)", str(value).strip().lower())
        size = int(float(match[1]) * _SIZE_UNITS[match[2]]) if match is not None else 0
        if size <= 0:
            self.fail(f"{value!r} is not a size; write 24GB or 512MiB", param, ctx)
        return size


class Names(click.ParamType):  # type: ignore[type-arg]  # likewise
    """A comma-separated list."""

    name = "NAMES"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the names, blanks stripped."""
        if isinstance(value, tuple):
            return value
        return tuple(name.strip() for name in str(value).split(",") if name.strip())


class ResultFile(click.Path):
    """A file for a result, which can be written: that is known before anything is measured.

    With `-` standard output has the result alone, and all text goes to standard error.
    """

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; what is printed from here on, by the user's program too, is put aside for `-`."""
        path = Path(str(super().convert(value, param, ctx)))
        check_writable(path)
        if path == STDOUT and ctx is not None:
            text_aside(ctx)
        return path


def command_argument(function: Any) -> Any:
    """The user's command: all words that are left."""
    return click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="COMMAND...")(
        function
    )


def optional_command_argument(function: Any) -> Any:
    """The same, of a command that can do without it."""
    return click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND...]")(function)


def isolation_options(function: Any) -> Any:
    """`--writable`, `--allow-writes`, `--network`: the exceptions from a run's isolation, as one value."""

    @wraps(function)
    def call(*, writable: tuple[Path, ...], allow_writes: bool, network: bool, **others: Any) -> Any:
        return function(exceptions=Exceptions(writable, allow_writes, network), **others)

    return _with_options(
        call,
        click.option(
            "--writable",
            type=click.Path(exists=True, path_type=Path),
            multiple=True,
            metavar="PATH",
            help="Let the program write to this folder; all other writes go to scratch.",
        ),
        click.option(
            "--allow-writes",
            is_flag=True,
            help="Continue even where writes to your files cannot be fully isolated.",
        ),
        click.option(
            "--network",
            is_flag=True,
            help="Let the program use this machine's network: other machines, and services on localhost.",
        ),
    )


def output_options(function: Any) -> Any:
    """`--quiet`, `--no-color`: the command gets what makes its screen."""

    @wraps(function)
    def call(*, quiet: bool, no_color: bool, **others: Any) -> Any:
        return function(new_screen=partial(Screen, quiet=quiet, no_color=no_color), **others)

    return _with_options(
        call,
        click.option("--no-color", is_flag=True, help="No colours (NO_COLOR is honoured too)."),
        click.option("--quiet", "-q", is_flag=True, help="No progress."),
    )


def _with_options(function: Any, *options: Any) -> Any:
    for option in reversed(options):
        function = option(function)
    return function
