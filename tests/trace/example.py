"""A made-up trace of two steps, small enough to know every figure of it by heart."""

from typing import Any

PID = 100


def host(cat: str, name: str, start: float, end: float, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": PID, "tid": PID, "ts": start, "dur": end - start,
        "args": args,
    }  # fmt: skip


def kernel(
    name: str, start: float, end: float, correlation: int, *, stream: int = 7, cat: str = "kernel"
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": end - start,
        "args": {"device": 0, "stream": stream, "correlation": correlation, "External id": correlation},
    }  # fmt: skip


def example_events() -> list[dict[str, Any]]:
    """One step: 40 us of data, one matmul of 30 us, `.item()` and its wait; device busy 30 + 2 us."""
    return [
        host("python_function", "train.py(10): step", 0, 200),
        host("user_annotation", "ProfilerStep#1", 1, 199),
        host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 50),
        host(
            "cpu_op", "aten::mm", 60, 80,
            **{"External id": 1, "Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]},
        ),
        host("cuda_runtime", "cudaLaunchKernel", 70, 75, correlation=1, **{"External id": 1}),
        kernel("sgemm_64x32", 90, 120, 1),
        host("cpu_op", "aten::item", 82, 140, **{"External id": 2}),
        host("cpu_op", "aten::_local_scalar_dense", 83, 139, **{"External id": 3}),
        host("cuda_runtime", "cudaMemcpyAsync", 84, 88, correlation=2, **{"External id": 3}),
        kernel("Memcpy DtoH (Device -> Pageable)", 124, 126, 2, cat="gpu_memcpy"),
        host("cuda_runtime", "cudaStreamSynchronize", 89, 130, correlation=3, **{"External id": 3}),
    ]  # fmt: skip


def example_trace() -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}
        ],
        "distributedInfo": {"rank": 3, "world_size": 8},
        "traceEvents": example_events(),
        "traceName": "small.json",
    }
