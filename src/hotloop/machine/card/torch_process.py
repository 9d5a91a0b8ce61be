"""Runs the measurements that need torch in a process of their own."""

import functools
import importlib.metadata
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec

import hotloop
from hotloop.machine.environment.program_python import answer, isolated, python_with_torch
from hotloop.model.machine import CopyRates, DeviceRates

_TIMEOUT_S = 180.0
"""Measured: 7 s on two cores, importing torch included; eight devices have eight times the work."""
_START = """
import importlib.util, runpy
number, home = sys.argv[1:]
spec = importlib.util.spec_from_file_location("hotloop", home + "/__init__.py", submodule_search_locations=[home])
sys.modules["hotloop"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["hotloop"])
sys.argv[1:] = [number]
runpy.run_module("hotloop.machine.card.torch_rates", run_name="__main__")
"""
"""Of hotloop's environment nothing but hotloop itself is on the path: the Python may be a different one."""
_VERSION = "from importlib.metadata import version; print(version('torch'), end='')"
_OWN_THREADS = frozenset({"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_AFFINITY"})


class TorchError(Exception):
    """The process ended without a result.

    Args:
        message: what happened.
        hint: what to type to see more.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class TorchRates(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that torch's process measured."""

    torch_version: str
    devices: tuple[DeviceRates, ...]
    copies: tuple[CopyRates, ...]
    errors: tuple[str, ...]
    """One line for each number that failed."""


def torch_version() -> str | None:
    """Return the version of the torch that is measured, without importing it; None where there is none."""
    python = python_with_torch()
    if python is None:
        return None
    if python != sys.executable:
        return _version_of(python)
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@functools.cache
def _version_of(python: str) -> str | None:
    return answer(python, _VERSION, Path.cwd())


def torch_rates(num_threads: int) -> TorchRates:
    """Return what torch reaches here.

    The environment's thread settings are taken off, because the card is about the machine. Waiting is
    passive, because with spinning barriers busy neighbours made a 256x256 product 16 times slower (16 ms for
    1 ms). The process starts in hotloop's own folder: a user's may hold modules with the names of libraries.

    Raises:
        TorchError: it crashed, hung, or said something else.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _OWN_THREADS}
    python = python_with_torch() or sys.executable
    command = [*isolated(python, _START, Path.cwd()), str(num_threads), str(Path(hotloop.__file__).parent)]
    hint = f"to see why: {shlex.join([python, '-m', 'hotloop.machine.card.torch_rates', str(num_threads)])}"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=True,
            cwd=Path(hotloop.__file__).parent.parent,
            env=environment | {"OMP_WAIT_POLICY": "PASSIVE"},
            timeout=_TIMEOUT_S,
        )
        return msgspec.json.decode(done.stdout, type=TorchRates)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines() or [
            f"exit code {error.returncode}"
        ]
        raise TorchError(f"torch failed: {lines[-1]}", hint) from error
    except subprocess.TimeoutExpired as error:
        raise TorchError(f"torch took longer than {_TIMEOUT_S:.0f} s", hint) from error
    except msgspec.DecodeError as error:
        raise TorchError(f"torch's process gave no result: {error}", hint) from error
