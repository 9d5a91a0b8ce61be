"""The environment of the user's processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import hotloop
from hotloop.probe.process.config import VARIABLE

_SITE = Path(__file__).parent / "site"
QUIET_TRACKERS = {
    # A trial is not an experiment of the user's: trackers stay off or write to scratch.
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "DISABLED",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFF": "1",
}

PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
"""OpenMP threads sleep at barriers: GNU's, Intel's and LLVM's runtimes."""


def probed(environment: Mapping[str, str], config: Path | str) -> dict[str, str]:
    """Return the environment with the probe in it.

    Args:
        environment: what the user's command would run in.
        config: the file of a saved `ProbeConfig`, or the orders themselves.
    """
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([str(_SITE), path] if path else [str(_SITE)]),
        "HOTLOOP_HOME": str(Path(hotloop.__file__).parent),
        VARIABLE: str(config),
    }


PROFILER_LOGS = {"KINETO_LOG_LEVEL": "99", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""torch.profiler logs its own start and stop, and each first block of memory that it does not know, to the program's
standard error; the levels are read when torch is loaded."""


def without_profiler_logs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that torch.profiler will look at; levels that are set stay."""
    return {**PROFILER_LOGS, **environment}


def with_changes(environment: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with an optimization's variables; `LD_PRELOAD` and `GLIBC_TUNABLES` are joined."""
    joined = {"LD_PRELOAD": " ", "GLIBC_TUNABLES": ":"}
    result = dict(environment)
    for name, value in changes.items():
        before = result.get(name)
        if name in joined and before:
            result[name] = f"{value}{joined[name]}{before}"
        else:
            result[name] = value
    return result


def quiet(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment of a run that is not the user's experiment: trackers are off or write to scratch."""
    return {
        **environment,
        **QUIET_TRACKERS,
        "MLFLOW_TRACKING_URI": f"file:{scratch / 'mlruns'}",
    }


def in_own_network(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run whose network is a loopback alone: ranks look for no other interface."""
    return {
        **environment,
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "TP_SOCKET_IFNAME": "lo",
    }


def own_caches(environment: Mapping[str, str], scratch: Path, compiled: Path | None = None) -> dict[str, str]:
    """Return the environment with compile and tuning caches of its own.

    Args:
        environment: the user's.
        scratch: where they are.
        compiled: where compiled code is instead, which others have as well.
    """
    caches = scratch / "caches"
    compiled = compiled or caches
    return {
        **environment,
        "TORCHINDUCTOR_CACHE_DIR": str(compiled / "inductor"),
        "TRITON_CACHE_DIR": str(compiled / "triton"),
        "MIOPEN_USER_DB_PATH": str(caches / "miopen"),
        "MIOPEN_CUSTOM_CACHE_DIR": str(caches / "miopen"),
        "PYTORCH_TUNABLEOP_FILENAME": str(caches / "tunableop.csv"),
        "CUDA_CACHE_PATH": str(caches / "cuda"),
    }
