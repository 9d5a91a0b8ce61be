"""What this process's program is made of: read once or twice, never on the hot path."""

from __future__ import annotations

import json
import os
import platform
import sys
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hotloop.probe.process.rank import rank_and_world

FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers", "accelerate")
VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "LD_PRELOAD",
    "GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_ARENA_MAX",
    "PYTORCH_CUDA_ALLOC_CONF", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "TORCHINDUCTOR_MAX_AUTOTUNE",
)  # fmt: skip


class Facts:
    """The facts of this process, collected by the hook points."""

    def __init__(self) -> None:
        self.roots: list[dict[str, Any]] = []
        self.loaders: list[dict[str, Any]] = []
        self.optimizers: list[dict[str, Any]] = []
        self.notes: list[dict[str, str]] = []
        self.double_backward = False
        self.anomaly_mode = False
        self.num_looked = self.num_profiled = 0
        """Backward passes, until the first heavy instrument, and those under a profiler of the program's own."""
        self.autocast_dtype: str | None = None
        self.distributed: str | None = None
        self.shared_memory = False
        self.other_trainers = False
        self.settled = False
        self._peaks: dict[str, int | None] = {}
        self.ddp_modules: list[weakref.ref[Any]] = []

    def write(self, folder: Path, effects: list[dict[str, Any]], steps: int) -> None:
        """Write `process-<pid>.json`, whole or not at all."""
        path = folder / f"process-{os.getpid()}.json"
        scratch = path.with_suffix(".part")
        scratch.write_text(json.dumps({**self._of_process(), "effects": effects, "steps": steps}))
        scratch.replace(path)

    def _of_process(self) -> dict[str, Any]:
        import torch

        rank, world_size = rank_and_world()
        self.anomaly_mode = self.anomaly_mode or torch.is_anomaly_enabled()
        return {
            "pid": os.getpid(),
            "rank": rank,
            "world_size": world_size,
            "argv": sys.orig_argv,
            "torch_version": torch.__version__,
            "python_version": platform.python_version(),
            "roots": self.roots,
            "loaders": self.loaders,
            "optimizers": self.optimizers,
            "notes": self.notes,
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
            "anomaly_mode": self.anomaly_mode,
            "profiled": self.num_profiled / self.num_looked if self.num_looked else None,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "double_backward": self.double_backward,
            "shared_memory": self.shared_memory,
            "other_trainers": self.other_trainers,
            "distributed": self.distributed,
            "autocast_dtype": self.autocast_dtype,
            "exposed_communication_s": self._exposed_communication_s(),
            "matmul_precision": torch.get_float32_matmul_precision(),
            "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
            "frameworks": [name for name in FRAMEWORKS if name in sys.modules],
            "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
            **(self._peaks or _peaks()),
        }

    def settle(self) -> None:
        """Take the memory's peaks now, and look for profilers no more: what comes later is a heavy instrument's."""
        self.settled = True
        self._peaks = self._peaks or _peaks()

    def _exposed_communication_s(self) -> float | None:
        """Gradient communication in a backward that no computation hides, from the averages that DDP keeps itself.

        None: no DistributedDataParallel, or it has not sampled an iteration yet.
        """
        for reference in self.ddp_modules:
            module = reference()
            data = module._get_ddp_logging_data() if module is not None else {}
            communication = float(data.get("avg_backward_comm_time", 0))
            if communication:
                overlap = float(data.get("avg_backward_compute_comm_overlap_time", 0))
                return max(0.0, communication - overlap) * 1e-9
        return None


def _peaks() -> dict[str, int | None]:
    import torch

    used = torch.cuda.is_initialized()
    device = torch.cuda.max_memory_allocated() if used else None
    return {"device_peak_bytes": device, "host_peak_bytes": _host_peak_bytes()}


def _host_peak_bytes() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def num_values(parameters: Iterable[Any]) -> int:
    """Return how many numbers parameters hold; a lazy one has no size before the first forward."""
    from torch.nn.parameter import is_lazy

    return sum(parameter.numel() for parameter in parameters if not is_lazy(parameter))


def describe_root(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, compiled: bool
) -> dict[str, Any]:
    """Return what a root module is made of (see `hotloop.model.observation.ModuleFacts`)."""
    parameters = list(module.parameters())
    inputs = [
        value for value in (*args, *kwargs.values()) if hasattr(value, "dtype") and hasattr(value, "shape")
    ]
    layers = Counter(
        type(child).__name__ for child in module.modules() if not any(True for _ in child.children())
    )
    inner = getattr(module, "_orig_mod", None) or module
    return {
        "cls": type(inner).__name__,
        "num_parameters": num_values(parameters),
        "dtypes": sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters}),
        "devices": sorted({parameter.device.type for parameter in parameters}),
        "layer_counts": dict(layers),
        "input_shapes": [list(value.shape) for value in inputs],
        "input_dtypes": [str(value.dtype).removeprefix("torch.") for value in inputs],
        "compiled": compiled or inner is not module,
        "training": bool(module.training),
    }


def distributed_kind(module: Any) -> str | None:
    """Return how a root module is distributed, judged by its class."""
    names = {cls.__name__ for cls in type(module).__mro__}
    known = {
        "DistributedDataParallel": "ddp",
        "DataParallel": "dp",
        "FullyShardedDataParallel": "fsdp",
        "FSDPModule": "fsdp",
    }
    return next((kind for name, kind in known.items() if name in names), None)
