"""Runs the measurements that need torch in a process of their own."""

import importlib.metadata
import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec

import hotloop
from hotloop.machine.card.torch_rates import TorchRates

_TIMEOUT_S = 180.0
"""Measured: 7 s on two cores, importing torch included; eight devices have eight times the work."""
_START = (
    "import runpy, sys; number, *sys.path[:0] = sys.argv[1:]; sys.argv[1:] = [number];"
    " runpy.run_module('hotloop.machine.card.torch_rates', run_name='__main__')"
)
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


def _import_places() -> list[str]:
    """The absolute places of this process's imports but the current folder."""
    here = os.path.realpath(".")
    return [place for place in sys.path if os.path.isabs(place) and os.path.realpath(place) != here]


def torch_version() -> str | None:
    """Return the version of the installed torch without importing it, None where there is none."""
    if importlib.util.find_spec("torch") is None:
        return None
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def torch_rates(num_threads: int) -> TorchRates:
    """Return what torch reaches here.

    The environment's thread settings are taken off, because the card is about the machine. Waiting is
    passive, because with spinning barriers busy neighbours made a 256x256 product 16 times slower (16 ms for
    1 ms). The process starts in hotloop's own folder: a user's may hold modules with the names of libraries.

    Raises:
        TorchError: it crashed, hung, or said something else.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _OWN_THREADS}
    # Isolated, with the places that this process imports from: nothing of the current folder runs here.
    command = [sys.executable, "-I", "-c", _START, str(num_threads), *_import_places()]
    hint = f"to see why: {shlex.join([sys.executable, '-m', 'hotloop.machine.card.torch_rates', str(num_threads)])}"
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
