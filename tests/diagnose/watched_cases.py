"""Observations with what monitors, operators and the account of the run tell."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from hotloop.model.deep import ConstantCall, Deep, Forwards, GrowingContainer, GrowingHooks, Loading
from hotloop.model.monitors import Monitor, Monitors
from hotloop.model.observation import Observation
from hotloop.model.operators import Efficiency, Operator, Operators
from hotloop.model.step_series import StepSeries

from .dataflow_cases import DATAFLOW_CASES
from .observations import FINE, observed, with_loader, with_parts, with_phases, with_program


def with_monitors(observation: Observation = FINE, **means: float) -> Observation:
    """Return it with metrics that had one value all the time."""
    metrics = {
        name.replace("__", "{") + ("}" if "__" in name else ""): Monitor(
            mean=value, p95=value, max=value, samples=(value, value)
        )
        for name, value in means.items()
    }
    seen = Monitors(interval_s=0.5, begin_s=2.0, end_s=3.0, times_s=(2.0, 2.5), metrics=metrics)
    return msgspec.structs.replace(observation, monitors=seen)


def with_gpu(observation: Observation, name: str, label: str, value: float) -> Observation:
    """Return it with a metric of a GPU."""
    monitor = Monitor(mean=value, p95=value, max=value, samples=(value,))
    seen = Monitors(
        interval_s=0.5, begin_s=0.0, end_s=1.0, times_s=(0.5,), metrics={f"{name}{{{label}}}": monitor}
    )
    return msgspec.structs.replace(observation, monitors=seen)


def operator(name: str, share: float, count: float = 10.0) -> Operator:
    """Return an operator of so large a share of the time."""
    return Operator(
        name=name,
        shapes=((8, 16),),
        count=count,
        self_s=share * 0.1,
        device_s=None,
        share=share,
        allocated_bytes=0.0,
    )


def with_operators(*operators: Operator, num: float = 1000.0) -> Observation:
    """Return the fine program's observation with these operators."""
    seen = Operators(num_steps=3, window_s=0.3, num=num, self_s=0.09, device_s=None, operators=operators)
    return observed(deep=Deep(operators=seen))


_MATMUL = operator("aten::addmm", 0.7)
_SLOW = Efficiency(
    flop=1e9, flop_per_s=1e10, precision="fp32", peak_flop_per_s=2e11, mfu=0.05, why_no_peak=None
)
_COMPILED_AGAIN = msgspec.structs.replace(
    with_parts(compilation_s=3.0).run,
    num_steps=90,
    num_compilations=9,
    num_recompilations=8,
    recompilation_s=2.0,
)
_SCORED = with_parts(evaluation_s=3.0)


def with_memory(*gigabytes: float) -> Observation:
    """Return it with so much memory of the training process, twice a second."""
    times = tuple(2.0 + 0.5 * at for at in range(len(gigabytes)))
    own = Monitor(mean=0.0, p95=0.0, max=0.0, samples=tuple(value * 1e9 for value in gigabytes))
    free = Monitor(mean=8e9, p95=8e9, max=8e9, samples=())
    seen = Monitors(
        interval_s=0.5,
        begin_s=2.0,
        end_s=times[-1],
        times_s=times,
        metrics={"program_memory_bytes": own, "memory_available_bytes": free},
    )
    return msgspec.structs.replace(FINE, monitors=seen)


def with_series(durations_s: Sequence[float], **work: Sequence[float]) -> Observation:
    """Return it with single steps of so many seconds, and with what they had to do."""
    column = struct.pack(f"<{len(durations_s)}f", *durations_s)
    series = StepSeries(
        rank=None,
        pid=1,
        num=len(durations_s),
        begin_s=b"",
        duration_s=column,
        phases={},
        kind=bytes(len(durations_s)),
        work={name: struct.pack(f"<{len(column)}f", *column) for name, column in work.items()},
    )
    return msgspec.structs.replace(FINE, series=(series,))


_HOOKS = GrowingHooks(
    path="train.py", line=31, function="fit", hook="keep", hook_path="train.py", hook_line=29, hook_last=30,
    num=40, per_step=2.0,
)  # fmt: skip
_LOADED = Loading(
    process="train", num_processes=1, window_s=1.0, num_batches=10, num_samples=320, sample_s=0.002, parts=(),
    used_bytes_per_sample=8.0, read_bytes_per_sample=None, reads_per_sample=None,
    constant=(
        ConstantCall(
            path="data.py", line=12, function="__getitem__", called="filter_bank", num_per_sample=1.0, share=0.7
        ),
    ),
)  # fmt: skip


WATCHED: dict[str, Observation] = {
    **DATAFLOW_CASES,
    "hooks-pile-up": msgspec.structs.replace(FINE, deep=Deep(growing_hooks=(_HOOKS,))),
    "steps-get-longer": with_series([0.05 + 0.001 * at for at in range(96)]),
    "same-for-every-sample": msgspec.structs.replace(with_phases(data=0.4), deep=Deep(loading=_LOADED)),
    "loader-made-each-epoch": with_loader(
        with_parts(epoch_boundary_s=3.0), num_workers=2, num_iterators=5, num_made=5, persistent_workers=True
    ),
    "forward-without-backward": msgspec.structs.replace(
        FINE,
        deep=Deep(
            forwards=(
                Forwards(
                    path="train.py",
                    line=30,
                    function="accuracy",
                    count_per_step=1.0,
                    unused_per_step=1.0,
                    repeated_per_step=1.0,
                    unused_s=0.02,
                ),
            )
        ),
    ),
    "loss-graph-kept-alive": msgspec.structs.replace(
        FINE,
        deep=Deep(
            growing_containers=(
                GrowingContainer(
                    name="losses",
                    path="train.py",
                    function="fit",
                    kind="list",
                    per_step=1.0,
                    bytes_per_step=4.0,
                    keeps_graph=True,
                ),
            )
        ),
    ),
    "memory-growing": with_memory(*(1 + 0.01 * at for at in range(9))),
    "evaluation-with-gradients": msgspec.structs.replace(
        _SCORED, run=msgspec.structs.replace(_SCORED.run, scored_with_gradients_s=2.0)
    ),
    "garbage-collected-in-step": msgspec.structs.replace(
        FINE, run=msgspec.structs.replace(FINE.run, num_collections=30, collection_s=2.0)
    ),
    "profiler-left-on": with_program(profiled=1.0),
    "stolen-time": with_monitors(cpu_steal_ratio=0.2),
    "memory-swapped": with_monitors(swap_in_bytes_per_s=20e6),
    "waiting-for-disk": with_monitors(
        with_loader(with_phases(data=0.5)), cpu_iowait_ratio=0.1, disk_read_bytes_per_s=50e6
    ),
    "throttled-device": with_gpu(
        FINE, "gpu_throttled_ratio", 'gpu="0",reason="hardware thermal slowdown"', 0.5
    ),
    "idle-device": with_gpu(with_program(device="cuda"), "gpu_utilization_ratio", 'gpu="0"', 0.2),
    "low-efficiency": msgspec.structs.replace(with_operators(_MATMUL), efficiency=_SLOW),
    "many-tiny-operators": with_operators(_MATMUL, num=40_000.0),
    "pointwise-chains": with_operators(
        _MATMUL, msgspec.structs.replace(operator("aten::gelu", 0.6), shapes=((64, 1024),))
    ),
    "tensor-copies": with_operators(_MATMUL, operator("aten::copy_", 0.25)),
    "logging-in-step": msgspec.structs.replace(
        FINE, run=msgspec.structs.replace(with_parts(logging_s=3.0).run, num_steps=90)
    ),
    "repeated-compilation": observed(run=_COMPILED_AGAIN),
}
"""For each code a program that has the pattern."""
QUIET_WATCHED = {"stolen-time", "waiting-for-disk", "idle-device", "low-efficiency"}
"""Those that are information by their pages."""
