"""Whether a plan was proven on this machine, this torch and this program."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from hotloop.machine.host.identity import differences, identity
from hotloop.model.machine import MachineIdentity
from hotloop.model.tuning import Compatibility


def misfits(fit: Compatibility, script: Path | None, torch_version: str | None) -> list[str]:
    """Return in what a plan's machine, torch or program differ from what is here; empty: it fits.

    A script that has been edited is still the same program: see `edits`.

    Args:
        fit: what the plan was proven on.
        script: that is to run; None: it is not known.
        torch_version: that it runs with; None: it is not known.
    """
    return [*moved(fit.machine), *_torch(fit.torch_version, torch_version), *_program(fit, script)]


def moved(machine: dict[str, Any]) -> list[str]:
    """Return in what the machine of an earlier measurement differs from this one."""
    try:
        then = msgspec.convert(machine, MachineIdentity)
    except msgspec.ValidationError:
        return ["the plan does not say what machine it was made on"]
    return [f"machine: {difference}" for difference in differences(then, identity())]


def _torch(then: str | None, now: str | None) -> list[str]:
    if then is None or now is None or then.split("+")[0] == now.split("+")[0]:
        return []
    return [f"torch: the plan was made with {then}, here is {now}"]


def _program(fit: Compatibility, script: Path | None) -> list[str]:
    if script is None or fit.script is None:
        return []
    if script.name != Path(fit.script).name:
        return [f"program: the plan was made for {fit.script}, not for {script}"]
    return []


def edits(fit: Compatibility, script: Path | None) -> list[str]:
    """Return what was edited since the plan was proven.

    That does not void it: each optimization looks for what it acts on in the running program, and does nothing where
    that is gone.
    """
    if script is None or fit.script_sha256 is None or not script.is_file():
        return []
    same = hashlib.sha256(script.read_bytes()).hexdigest() == fit.script_sha256
    return [] if same else [f"{script} has been edited since the plan was proven"]
