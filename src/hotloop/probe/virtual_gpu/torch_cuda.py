"""What `torch.cuda` answers where the device is not there."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
from hotloop.probe.virtual_gpu.legacy_types import have_legacy_types
from hotloop.probe.virtual_gpu.streams import Stream, put_into

BF16_FROM = (8, 0)
"""Compute capability from which `torch.cuda.is_bf16_supported` is true without emulation."""
CUDA, CUDNN, NCCL = "12.8", 91002, (2, 27, 5)
"""Versions of a recent build of torch for a device."""

_DOES_NOTHING = (
    *("_lazy_init", "init", "synchronize", "set_device", "set_stream", "ipc_collect"),
    *("manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"),
    *("set_per_process_memory_fraction", "reset_max_memory_allocated", "reset_accumulated_memory_stats"),
    "_record_memory_history",
)

_OF_ACCELERATOR = (
    *("current_stream", "synchronize", "empty_cache", "memory_stats", "reset_peak_memory_stats"),
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
)


@dataclass(frozen=True)
class Device:
    """A device as a program may ask about it.

    Attributes:
        name: as the driver says it.
        capability: compute capability, major and minor.
        total_bytes: its memory.
        num_processors: streaming multiprocessors, or compute units.
    """

    name: str
    capability: tuple[int, int]
    total_bytes: int
    num_processors: int


def answer_for(device: Device, allocator: CachingAllocator) -> None:
    """Have `torch.cuda` speak for a device, with the allocator's figures."""
    cuda: Any = torch.cuda
    properties = SimpleNamespace(
        name=device.name,
        major=device.capability[0],
        minor=device.capability[1],
        total_memory=device.total_bytes,
        multi_processor_count=device.num_processors,
        is_integrated=False,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=96 << 10,
        shared_memory_per_multiprocessor=96 << 10,
        regs_per_multiprocessor=64 << 10,
        L2_cache_size=6 << 20,
        max_threads_per_block=1024,
        clock_rate=1_000_000,
        memory_clock_rate=1_000_000,
        memory_bus_width=384,
        is_multi_gpu_board=False,
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
        uuid=uuid.UUID(int=0),
        gcnArchName="",
    )
    constants = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": device.capability,
        "get_device_name": device.name,
        "get_device_properties": properties,
        "get_arch_list": [f"sm_{device.capability[0]}{device.capability[1]}"],
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "current_stream": Stream(),
        "default_stream": Stream(),
        "is_current_stream_capturing": False,
        "get_rng_state_all": [torch.zeros(16, dtype=torch.uint8)],
        "memory_summary": "memory of a virtual GPU",
        "utilization": 0,
        "memory_usage": 0,
        "temperature": 0,
        "power_draw": 0,
        "clock_rate": 0,
        "memory_snapshot": [],
        "_snapshot": {"segments": [], "device_traces": []},
        "get_allocator_backend": "native",
        "initial_seed": 0,
        "can_device_access_peer": False,
    }
    answers = {name: _always(value) for name, value in constants.items()}
    answers |= {name: _always(None) for name in _DOES_NOTHING}
    reads = {
        "memory_allocated": lambda: allocator.allocated,
        "max_memory_allocated": lambda: allocator.told_allocated,
        "memory_reserved": lambda: allocator.reserved,
        "max_memory_reserved": lambda: allocator.told_reserved,
        "reset_peak_memory_stats": allocator.reset_peaks,
        "empty_cache": allocator.empty_cache,
        "memory_cached": lambda: allocator.reserved,
        "max_memory_cached": lambda: allocator.told_reserved,
        "memory_stats": lambda: _statistics(allocator),
        "reset_peak_host_memory_stats": lambda: None,
        "mem_get_info": lambda: (device.total_bytes - allocator.reserved, device.total_bytes),
    }
    answers |= {name: _asking(read) for name, read in reads.items()}
    for module in (cuda, cuda.random, cuda.memory):
        for name, answer in answers.items():
            if module is cuda or hasattr(module, name):
                setattr(module, name, answer)
    cuda.is_bf16_supported = lambda including_emulation=True: (
        including_emulation or device.capability >= BF16_FROM
    )
    put_into(cuda)
    have_legacy_types()
    _have_versions()
    if hasattr(torch, "accelerator"):
        _be_the_accelerator()


def _have_versions() -> None:
    """Say versions of CUDA's libraries, whose absence a program takes for the CPU; nothing is ever theirs to do."""
    whole: Any = torch
    whole.version.cuda = CUDA
    cudnn: Any = torch.backends.cudnn
    cudnn.version, cudnn.is_available, cudnn.is_acceptable = _always(CUDNN), _always(True), _always(False)
    whole.cuda.nccl.version = _always(NCCL)


def _be_the_accelerator() -> None:
    """Have `torch.accelerator`, whose functions ask C++, give what `torch.cuda` answers."""
    cuda: Any = torch.cuda
    accelerator: Any = torch.accelerator
    inner: Any = torch._C
    inner._get_accelerator = inner._accelerator_getAccelerator = _always(torch.device("cuda"))
    for name, same in {"current_device_index": "current_device", "get_memory_info": "mem_get_info"}.items():
        setattr(accelerator, name, getattr(cuda, same))
    accelerator.current_device_idx = cuda.current_device
    accelerator.set_device_index = accelerator.set_device_idx = accelerator.set_stream = _always(None)
    accelerator.get_device_capability = _always({"supported_dtypes": set()})
    accelerator.device_index = cuda.device
    for name in _OF_ACCELERATOR:
        setattr(accelerator, name, getattr(cuda, name))


def _statistics(allocator: CachingAllocator) -> dict[str, int]:
    """Return the figures of `torch.cuda.memory_stats` that are known; others are zero."""
    figures: dict[str, int] = defaultdict(int)
    figures["num_alloc_retries"] = allocator.num_retries
    for name, now, peak in (
        ("allocated", allocator.allocated, allocator.told_allocated),
        ("active", allocator.allocated, allocator.told_allocated),
        ("reserved", allocator.reserved, allocator.told_reserved),
    ):
        figures[f"{name}_bytes.all.current"], figures[f"{name}_bytes.all.peak"] = now, peak
    return figures


def _always(value: Any) -> Any:
    return lambda *_, **__: value


def _asking(read: Any) -> Any:
    return lambda *_, **__: read()
