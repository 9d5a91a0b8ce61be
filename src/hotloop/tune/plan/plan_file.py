"""The plan as a TOML file that people read, edit and keep under version control."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import tomlkit

from hotloop.model.errors import HotloopError
from hotloop.model.observation import SCHEMA
from hotloop.model.tuning import Compatibility, ParityEvidence, Plan, PlanStep
from hotloop.optimize.optimization import Optimization
from hotloop.optimize.registry import get

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEADER = (
    "hotloop plan: what `hotloop run --plan` switches on.",
    "Steps may be edited or removed; the ratios are what was measured, they are not read back as promises.",
)
MAX_BYTES = 4 << 20
CORRECT = "correct that place, or make a new plan with hotloop tune"


def to_toml(plan: Plan) -> str:
    """Return the plan as TOML with comments."""
    document = tomlkit.document()
    for line in HEADER:
        document.add(tomlkit.comment(line))
    raw = _without_none(msgspec.to_builtins(plan))
    raw["steps"] = [{key: value for key, value in step.items() if value != {}} for step in raw["steps"]]
    for name, value in raw.items():
        document.add(name, value)
    return tomlkit.dumps(document)


def _without_none(value: Any) -> Any:
    """TOML has no null: what was not measured is left out."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(inner) for inner in value]
    return value


def _with_none(raw: dict[str, Any]) -> dict[str, Any]:
    """Put back what TOML had no word for."""
    filled = {"speedup": None, "parity": None, **raw}
    for table, kind in (("parity", ParityEvidence), ("fit", Compatibility)):
        if isinstance(filled.get(table), dict):
            filled[table] = {**dict.fromkeys(_may_be_none(kind)), **filled[table]}
    return filled


def _may_be_none(kind: type[msgspec.Struct]) -> list[str]:
    return [name for name, hint in get_type_hints(kind).items() if type(None) in get_args(hint)]


def read_plan(path: Path) -> Plan:
    """Return the plan in a file, every step checked.

    Raises:
        HotloopError: there is no such file, it is not TOML, not a plan, or a step is unknown or out of range.
    """
    raw = _toml(path)
    _check_schema(path, raw)
    _check_complete(path, raw)
    try:
        plan = msgspec.convert(_with_none(raw), Plan)
        _check_keys(path, raw["steps"])
    except msgspec.ValidationError as error:
        raise HotloopError(f"{path} is not a hotloop plan: {_place(str(error))}", CORRECT) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise HotloopError(
            f"{path} is not a hotloop plan: it holds a value that no plan has", CORRECT
        ) from error
    known = [_optimization(path, step) for step in plan.steps]
    _check_together(path, known)
    for step, optimization in zip(plan.steps, known, strict=True):
        _check_params(path, step, optimization)
    return plan


def _toml(path: Path) -> dict[str, Any]:
    try:
        raw: dict[str, Any] = tomllib.loads(_text(path))
    except FileNotFoundError:
        raise HotloopError(
            f"there is no plan {str(path)!r}",
            "make one: hotloop tune COMMAND, or name another file",
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise HotloopError(f"the plan {path} is not TOML: {error}", CORRECT) from error
    except RecursionError as error:
        raise HotloopError(f"the plan {path} is nested too deeply to be one", CORRECT) from error
    except (OSError, ValueError) as error:
        raise HotloopError(
            f"the plan {path} cannot be read: {error}", "name a plan file with --plan FILE"
        ) from error
    return raw


def _text(path: Path) -> str:
    """The file's text; a plan is a regular file of a few kB."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_BYTES >> 20} MiB")
    return content.decode()


def _check_complete(path: Path, raw: dict[str, Any]) -> None:
    """All that is missing is named at once: a plan that is written by hand has its steps without figures."""
    steps = raw.get("steps")
    for number, step in enumerate(steps if isinstance(steps, list) else (), start=1):
        missing = [field.name for field in msgspec.structs.fields(PlanStep) if field.required]
        missing = [name for name in missing if isinstance(step, dict) and name not in step]
        if missing:
            raise HotloopError(
                f"{path} is not a hotloop plan: step {number} has no {', '.join(missing)}",
                "a plan holds what was measured: hotloop tune --only NAME COMMAND tries one optimization and writes it",
            )


def _check_schema(path: Path, raw: dict[str, Any]) -> None:
    found = raw.get("schema", SCHEMA)
    if found != SCHEMA:
        raise HotloopError(
            f"the plan {path} is of schema {_shown(found)}, this hotloop reads schema {SCHEMA}",
            "use the hotloop that wrote it, or make a new plan with hotloop tune",
        )


def _shown(value: object) -> str:
    """A value in a message; numbers of thousands of digits have no decimal form in Python."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return "an unreadable kind"


def _place(message: str) -> str:
    """Steps are counted from 1 by people, and `$` says nothing to them."""
    message = re.sub(
        r" - at `\$\.steps\[(\d+)\]\.?", lambda match: f", in step {int(match[1]) + 1} `", message
    )
    return message.replace(" - at `$.", ", at `").removesuffix(" ``")


def _check_keys(path: Path, steps: list[dict[str, Any]]) -> None:
    """A misspelt key would silently switch nothing on."""
    known = [field.name for field in msgspec.structs.fields(PlanStep)]
    for number, step in enumerate(steps, 1):
        for key in step:
            if key not in known:
                raise HotloopError(
                    f"the plan {path} has {key!r} in step {number}, which says nothing",
                    f"correct or remove it; a step may have {', '.join(known)}",
                )


def _optimization(path: Path, step: PlanStep) -> Optimization:
    try:
        return get(step.name)
    except HotloopError as error:
        raise HotloopError(f"the plan {path} cannot be used: {error.message}", error.hint) from error


def _check_params(path: Path, step: PlanStep, optimization: Optimization) -> None:
    try:
        optimization.validate(step.params)
    except ValueError as error:
        raise HotloopError(
            f"the plan {path} sets {step.name} to what it cannot be: {error}",
            f"correct it in the file; `hotloop explain {step.name}` says what is allowed",
        ) from error


def _check_together(path: Path, optimizations: Sequence[Optimization]) -> None:
    for at, one in enumerate(optimizations):
        for other in optimizations[:at]:
            if one.name == other.name:
                raise HotloopError(f"the plan {path} has {one.name} twice", "remove one of the two steps")
            if one.name in other.conflicts or other.name in one.conflicts:
                raise HotloopError(
                    f"the plan {path} has {other.name} and {one.name}, which cannot be on together",
                    "remove one of the two steps",
                )


def is_plan(path: Path) -> bool:
    """Whether a file is a plan of ours, so that a new one may take its place."""
    try:
        raw = _toml(path)
    except HotloopError:
        return False
    return {"schema", "steps", "fit"} <= raw.keys()
