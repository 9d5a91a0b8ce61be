"""What the probe saw of the program itself."""

from __future__ import annotations

import msgspec


class ModuleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the root module is made of, as seen at its first training forward."""

    cls: str
    num_parameters: int = 0
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    layer_counts: dict[str, int] = {}
    """Class name to count, containers left out: `{"Conv2d": 20, "BatchNorm2d": 20}`."""
    input_shapes: tuple[tuple[int, ...], ...] = ()
    input_dtypes: tuple[str, ...] = ()
    compiled: bool = False
    training: bool = True
    grad_mode: str = ""
    """Under which it was first called: `grad`, `no_grad` or `inference`; empty: of an earlier version."""
    code_files: tuple[str, ...] = ()
    """That the model's own code stands in, torch's left out; empty: not looked at."""
    blocks: dict[str, int] = {}
    """Path of a container of equal blocks to their number: `{"transformer.h": 12}`."""
    shapes_vary: bool = False
    """Its inputs were seen in several shapes, beside the number of samples."""
    biased_before_norm: int | None = None
    """Convolutions with a bias that batch norm may take away; None: not looked at."""


class LoaderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one DataLoader of the program."""

    num_workers: int
    batch_size: int | None
    pin_memory: bool
    persistent_workers: bool
    prefetch_factor: int | None
    dataset: str
    dataset_len: int | None
    iterable: bool = False
    num_made: int = 1
    """How often one with these settings was made at its line."""
    num_iterators: int = 0
    """How often it was iterated anew."""
    batches_per_step: float | None = None
    """Batches that any thread took from it, over the steps of the process; None: no step was seen."""
    draws: tuple[str, ...] | None = None
    """Global generators of random numbers that reading its samples draws from; None: not looked at (workers read)."""
    told_epoch: bool = False
    """Its data set has a `set_epoch`."""
    path: str | None = None
    line: int | None = None
    used_in_step: bool = False


class OptimizerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one optimizer of the program."""

    cls: str
    num_parameters: int
    fused: bool | None
    foreach: bool | None
    supports_fused: bool
    path: str | None = None
    line: int | None = None


class ProgramFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe saw of the program itself, once, in the rank that reports first."""

    torch_version: str | None = None
    hip_version: str | None = None
    """Of ROCm, where torch was built for AMD's devices."""
    capability: tuple[int, int] | None = None
    """Compute capability of the GPU; None: there is none, or it was not told."""
    libraries: tuple[str, ...] = ()
    """Of the kernel libraries that an optimization can use: those installed beside the program."""
    python_version: str | None = None
    device: str = "cpu"
    """Device type of the root module's parameters."""
    roots: tuple[ModuleFacts, ...] = ()
    loaders: tuple[LoaderFacts, ...] = ()
    optimizers: tuple[OptimizerFacts, ...] = ()
    num_threads: int | None = None
    num_interop_threads: int | None = None
    anomaly_mode: bool = False
    profiled: float | None = None
    """Share of the backward passes that a profiler of the program's own looked at; None: of an earlier version."""
    reduced: float | None = None
    """Share of the backward passes after which DDP adds up the gradients of all ranks; None: there is no DDP."""
    deterministic: bool = False
    autocast_dtype: str | None = None
    """What the program itself already uses; None: full precision."""
    matmul_precision: str = "highest"
    convolution_precision: str = "float32"
    """What cuDNN computes float32 convolutions in: `tf32` is its default, or `float32`."""
    cudnn_benchmark: bool = False
    frameworks: tuple[str, ...] = ()
    """Of `lightning`, `transformers`, `accelerate`: those imported by the program."""
    simulators: tuple[str, ...] = ()
    """Of `gymnasium`, `gym`: those imported by the program, which then acts in environments."""
    world_size: int = 1
    double_backward: bool = False
    """`create_graph=True` was seen."""
    seeds: tuple[int, ...] = ()
    """That the program gave itself, in order, each once; trials give them again."""
    shared_memory: bool = False
    """Parameters shared between processes (Hogwild)."""
    distributed: str | None = None
    """`ddp`, `dp`, `fsdp` or None."""
    environment: dict[str, str] = {}
    """The variables that matter to speed and were set: OMP_NUM_THREADS, MALLOC_..., LD_PRELOAD."""
    script: str | None = None
    script_sha256: str | None = None
    notes: tuple[str, ...] = ()
    skipped_steps: int = 0
    """Optimizer steps that a GradScaler left out because gradients overflowed; they count as steps."""
