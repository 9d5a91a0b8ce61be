"""What this process's program is made of: read once or twice, never on the hot path."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, TypeVar

from hotloop.probe.process.rank import rank_and_world
from hotloop.probe.record.biased_convolutions import biased_before_norm
from hotloop.probe.record.blocks import repeated_blocks
from hotloop.probe.record.page_faults import PageFaults
from hotloop.probe.record.probabilities import ends_in_sigmoid
from hotloop.probe.record.sites import CallSites

_Fact = TypeVar("_Fact")
SAMPLE_EVERY = 8
"""Iterations, as often as boundaries look: one that DDP times takes it some 20 us more."""
LIBRARIES = ("torchao", "liger_kernel")
"""Of kernels, that optimizations use where they are installed."""
FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers", "accelerate")
SIMULATORS = ("gymnasium", "gym")
"""Libraries of environments: a program that imports one acts in it."""
VARIABLES = (
    "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "LD_PRELOAD",
    "GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_ARENA_MAX",
    "THP_MEM_ALLOC_ENABLE",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL", "TORCHINDUCTOR_MAX_AUTOTUNE",
)  # fmt: skip


class Device(Protocol):
    """What is asked of a device about its memory and its state."""

    def in_use(self) -> bool:
        """Whether the program has started the driver."""

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph."""

    def peak_bytes(self) -> int | None:
        """Return the most that tensors took on any device; None: there is none in use."""

    def pinned_bytes(self) -> int | None:
        """Return the most that pinned buffers took on the host; None: not told."""

    def memory(self) -> list[dict[str, Any]]:
        """Return what this process holds on each device in use."""


class Facts:
    """The facts of this process, collected by the hook points.

    Args:
        sites: where the user's code makes its calls; written with the facts.
    """

    def __init__(self, sites: CallSites) -> None:
        self._import_bytes = host_peak_bytes()
        """What the process had taken when torch had been imported."""
        self._sites = sites
        self.roots: list[dict[str, Any]] = []
        self.loaders: list[dict[str, Any]] = []
        self.optimizers: list[dict[str, Any]] = []
        self.notes: list[dict[str, str]] = []
        self.seeds: list[int] = []
        """That the program gave itself, in order, each once."""
        self.double_backward = False
        self.anomaly_mode = False
        self.num_looked = self.num_profiled = 0
        """Backward passes, until the first profiler, and those under a profiler of the program's own."""
        self.num_reduced = 0
        """Of the passes looked at, those after which DDP has added up the gradients of all ranks."""
        self._job: dict[str, Any] = {}
        """What is known of the ranks while they are there: programs leave the group before they end."""
        self._exposed: dict[int, float] = {}
        """Share of gradient communication that no computation hides in a backward pass, by the iteration of DDP's."""
        self.autocast_dtype: str | None = None
        self.distributed: str | None = None
        self.shared_memory = False
        self.other_trainers = False
        self.settled = False
        self._peaks: dict[str, int | None] = {}
        self.page_faults = PageFaults()
        self.ddp_modules: list[weakref.ref[Any]] = []
        self.skipped_steps = 0
        """Optimizer steps that a GradScaler left out."""
        self.invariants: dict[str, Any] | None = None
        """What the first training steps did; None: not asked for, or nothing was seen."""
        self.device: Device | None = None
        """The accelerator; None: torch was built for the CPU alone."""
        self._unread: dict[str, str] = {}

    def write(self, folder: Path, effects: list[dict[str, Any]], steps: int) -> None:
        """Write `process-<pid>.json`, whole or not at all."""
        path = folder / f"process-{os.getpid()}.json"
        scratch = path.with_suffix(".part")
        scratch.write_text(json.dumps({**self._of_process(), "effects": effects, "steps": steps}))
        scratch.replace(path)

    def _of_process(self) -> dict[str, Any]:
        import torch

        read, device = self._read, self.device
        self._look_at_job()
        self.anomaly_mode = self.anomaly_mode or torch.is_anomaly_enabled()
        return {
            "pid": os.getpid(),
            "argv": sys.orig_argv,
            "torch_version": torch.__version__,
            "hip_version": torch.version.hip,
            "libraries": read("libraries", _installed_libraries) or [],
            "skipped_steps": self.skipped_steps,
            "python_version": platform.python_version(),
            "roots": self.roots,
            "loaders": self.loaders,
            "optimizers": self.optimizers,
            "notes": self.notes,
            "sites": self._sites.written(),
            "seeds": self.seeds,
            "num_threads": torch.get_num_threads(),
            "num_interop_threads": torch.get_num_interop_threads(),
            "anomaly_mode": self.anomaly_mode,
            "profiled": self.num_profiled / self.num_looked if self.num_looked else None,
            "reduced": self.num_reduced / self.num_looked if self.ddp_modules and self.num_looked else None,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "double_backward": self.double_backward,
            "shared_memory": self.shared_memory,
            "other_trainers": self.other_trainers,
            "distributed": self.distributed,
            "autocast_dtype": self.autocast_dtype,
            **self._job,
            "matmul_precision": read("matmul_precision", lambda: matmul_precision(torch)),
            "convolution_precision": read("convolution_precision", lambda: convolution_precision(torch)),
            "cudnn_benchmark": read("cudnn_benchmark", lambda: bool(torch.backends.cudnn.benchmark)),
            "device_memory": (read("device_memory", device.memory) if device else None) or [],
            "pinned_bytes": read("pinned_bytes", device.pinned_bytes) if device else None,
            "invariants": self.invariants,
            "frameworks": [name for name in FRAMEWORKS if name in sys.modules],
            "simulators": [name for name in SIMULATORS if name in sys.modules],
            "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
            **(self._peaks or self._peaks_now()),
            "page_faults": self.page_faults.per_step(),
            "unread": self._unread,
        }

    def look_at_autocast(self) -> None:
        """Note the precision that autocast has here, where it is on."""
        import torch

        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                self.autocast_dtype = str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    def _read(self, name: str, getter: Callable[[], _Fact]) -> _Fact | None:
        """Return one fact, or None where torch refuses to tell it: the others are told all the same."""
        try:
            return getter()
        except Exception as error:  # whatever this version of torch raises
            self._unread[name] = f"{type(error).__name__}: {error}"
            return None

    def _peaks_now(self) -> dict[str, int | None]:
        device = self._read("device_peak_bytes", self.device.peak_bytes) if self.device else None
        return {
            "device_peak_bytes": device,
            "host_peak_bytes": host_peak_bytes(),
            "import_bytes": self._import_bytes,
        }

    def settle(self) -> None:
        """Take the memory's peaks now, and look for profilers no more: what comes later is a profiler's."""
        self._look_at_job()
        self.settled = True
        self.page_faults.end()
        self._peaks = self._peaks or self._peaks_now()

    def _look_at_job(self) -> None:
        (rank, world_size), known = rank_and_world(), self._job
        if rank is None and known:
            rank, world_size = known["rank"], known["world_size"]
        self.sample_communication()
        self._job = {
            "rank": rank,
            "world_size": world_size,
            "exposed_communication": list(self._exposed.values()),
        }

    def reduces(self) -> bool:
        """Whether the backward pass that begins ends with gradients added up: its forward was not under `no_sync`."""
        modules = [reference() for reference in self.ddp_modules]
        return any(getattr(module, "require_forward_param_sync", False) for module in modules)

    def sample_communication(self) -> None:
        """Keep what DDP measured last: of the first ten iterations and each hundredth, on a CPU each eighth.

        Not its averages: the first iteration is in them, in which ranks wait for one another to start. So is every
        other one that a rank came to late.
        """
        if not self.settled:
            self._read("exposed_communication", self._sample_communication)

    def _sample_communication(self) -> None:
        for module in filter(None, (reference() for reference in self.ddp_modules)):
            if module.device_type == "cpu":  # a look at the clock; on a device DDP waits for it
                module._set_ddp_runtime_logging_sample_rate(SAMPLE_EVERY)
            data = module._get_ddp_logging_data()
            communication = float(data.get("backward_comm_time", 0))
            if communication:
                exposed = max(0.0, communication - data.get("backward_compute_comm_overlap_time", 0))
                if data["iteration"] > 1:
                    self._exposed[data["iteration"]] = exposed / (
                        exposed + max(1, data["backward_compute_time"])
                    )
                return


def matmul_precision(torch: Any) -> str:
    """Return what float32 products on a GPU are computed in, in the words of the older getter.

    Once a program has used `fp32_precision`, the older getter raises (seen on torch 2.13).
    """
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


def convolution_precision(torch: Any) -> str:
    """Return what cuDNN computes float32 convolutions in: `tf32` unless the program says otherwise, or `float32`."""
    cudnn = torch.backends.cudnn
    conv: Any = getattr(cudnn, "conv", None)
    is_new = hasattr(conv, "fp32_precision")  # torch 2.9
    uses_tf32 = conv.fp32_precision == "tf32" if is_new else cudnn.allow_tf32
    return "tf32" if uses_tf32 else "float32"


def _installed_libraries() -> list[str]:
    return [name for name in LIBRARIES if importlib.util.find_spec(name)]


def host_peak_bytes() -> int | None:
    """Return the most memory that this process had in use; None: the system does not tell."""
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
    """Return what a root module is made of (see `hotloop.model.program.ModuleFacts`)."""
    parameters = list(module.parameters())
    inputs = [
        value for value in (*args, *kwargs.values()) if hasattr(value, "dtype") and hasattr(value, "shape")
    ]
    layers = Counter(
        type(child).__name__ for child in module.modules() if not any(True for _ in child.children())
    )
    inner = _uncompiled(module)
    return {
        "cls": type(inner).__name__,
        "num_parameters": num_values(parameters),
        "dtypes": sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters}),
        "devices": sorted({parameter.device.type for parameter in parameters}),
        "accelerators": sorted(
            {parameter.device.index or 0 for parameter in parameters if parameter.is_cuda}
        ),
        "layer_counts": dict(layers),
        "input_shapes": [list(value.shape) for value in inputs],
        "input_dtypes": [str(value.dtype).removeprefix("torch.") for value in inputs],
        "compiled": compiled or inner is not module,
        "training": bool(getattr(module, "training", False)),  # frozen by TorchScript it has none
        "grad_mode": _grad_mode(),
        "blocks": repeated_blocks(inner),
        "biased_before_norm": biased_before_norm(inner),
        "code_files": code_files({type(child) for child in module.modules()}),
    }


def is_symbolic(args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a module is called with stand-ins for tensors, as Keras calls a model to build it."""
    given = [*args, *kwargs.values()]
    for value in tuple(given):
        given += value.values() if isinstance(value, dict) else value if type(value) in (list, tuple) else ()
    try:
        return any(_stands_in(value) for value in given)
    except RuntimeError:  # a nested tensor has no shape
        return False


def _stands_in(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and (None in shape or bool(getattr(value, "is_meta", False)))


def is_described(module: Any, described: dict[str, Any]) -> bool:
    """Whether what is known of a root is said of modules of this class."""
    return bool(described["cls"] == type(_uncompiled(module)).__name__)


def _uncompiled(module: Any) -> Any:
    return getattr(module, "_orig_mod", None) or module


def _grad_mode() -> str:
    import torch

    if torch.is_inference_mode_enabled():
        return "inference"
    return "grad" if torch.is_grad_enabled() else "no_grad"


def code_files(classes: Iterable[type]) -> list[str]:
    """Return the files that the methods of classes stand in, and the functions that those call by name; not torch's."""
    files: dict[str, None] = {}
    bases = {base for cls in classes for base in cls.__mro__ if not base.__module__.startswith("torch.")}
    for value in [value for base in sorted(bases, key=str) for value in vars(base).values()]:
        if not isinstance(value, FunctionType):
            continue
        called = [value.__globals__.get(name) for name in value.__code__.co_names]
        for function in [value, *(each for each in called if isinstance(each, FunctionType))]:
            if not (function.__module__ or "torch.").startswith(("torch.", "hotloop.")):
                files[os.path.abspath(function.__code__.co_filename)] = None
    return [path for path in files if os.path.isfile(path)]


def describe_argument(name: str | None, value: Any) -> dict[str, Any]:
    """Return what a forward was given (see `hotloop.model.sites.Argument`)."""
    import torch

    is_tensor = isinstance(value, torch.Tensor)
    return {
        "name": name,
        "rank": value.dim() if is_tensor else None,
        "floating": is_tensor and value.is_floating_point(),
        "is_tuple": type(value) is tuple and all(_is_floating(part) for part in value),
    }


def describe_output(value: Any) -> dict[str, Any]:
    """Return what a forward gave back (likewise)."""
    return {**describe_argument(None, value), "ends_in_sigmoid": ends_in_sigmoid(value)}


def _is_floating(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()


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
