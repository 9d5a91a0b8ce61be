"""The plan as a TOML file that people read, edit and keep under version control."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from hotloop.model.errors import HotloopError
from hotloop.model.tuning import Plan
from hotloop.optimize.registry import get

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HEADER = (
    "hotloop plan: what `hotloop run --plan` switches on.",
    "Steps may be edited or removed; the ratios are what was measured, they are not read back as promises.",
)


def to_toml(plan: Plan) -> str:
    """Return the plan as TOML with comments."""
    document = tomlkit.document()
    for line in HEADER:
        document.add(tomlkit.comment(line))
    for name, value in _without_none(msgspec.to_builtins(plan)).items():
        document.add(name, value)
    return tomlkit.dumps(document)


def _without_none(value: Any) -> Any:
    """TOML has no null: what was not measured is left out."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(inner) for inner in value]
    return value


def read_plan(path: Path) -> Plan:
    """Return the plan in a file, every step checked.

    Raises:
        HotloopError: there is no such file, it is not TOML, not a plan, or a step is unknown or out of range.
    """
    try:
        raw = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise HotloopError(
            f"there is no plan {str(path)!r}",
            "make one: hotloop tune COMMAND, or name another with --plan FILE",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise HotloopError(
            f"the plan {path} cannot be read: {error}", "name a plan file with --plan FILE"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise HotloopError(
            f"the plan {path} is not TOML: {error}",
            "correct that place, or make a new plan with hotloop tune",
        ) from error
    try:
        plan = msgspec.convert({"speedup": None, "parity": None, **raw}, Plan, strict=False)
    except msgspec.ValidationError as error:
        raise HotloopError(
            f"{path} is not a hotloop plan: {error}",
            "correct that place, or make a new plan with hotloop tune",
        ) from error
    _check_steps(path, plan)
    return plan


def _check_steps(path: Path, plan: Plan) -> None:
    for step in plan.steps:
        optimization = get(step.name)
        try:
            optimization.validate(step.params)
        except ValueError as error:
            raise HotloopError(
                f"the plan {path} sets {step.name} to what it cannot be: {error}",
                f"correct it in the file; `hotloop explain {step.name}` says what is allowed",
            ) from error


def is_plan(path: Path) -> bool:
    """Whether a file is a plan of ours, so that a new one may take its place."""
    try:
        return path.read_text().startswith(f"# {HEADER[0]}")
    except (OSError, UnicodeDecodeError):
        return False
