"""Put the virtual GPU into this process; called from `sitecustomize`, before any of the user's code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotloop.probe.setup.import_hook import when_torch_is_imported
from hotloop.probe.virtual_gpu.native import NotToBeHad, load_device_guard


def start(order: dict[str, Any], folder: str) -> None:
    """Wait for torch in this process.

    Args:
        order: `{"device", "configurations", "workspace", "cache"}`.
        folder: where the report goes.
    """
    try:
        load_device_guard(Path(order["cache"]))
    except NotToBeHad as reason:
        Path(folder, f"virtual-failed-{os.getpid()}").write_text(str(reason))
        return
    when_torch_is_imported(lambda: _install(order, Path(folder)))


def _install(order: dict[str, Any], folder: Path) -> None:
    import atexit

    import torch

    from hotloop.probe.virtual_gpu import torch_cuda
    from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
    from hotloop.probe.virtual_gpu.corrections import DeviceKernels, let_fake_parameters_be
    from hotloop.probe.virtual_gpu.steps import VirtualSteps
    from hotloop.probe.virtual_gpu.storages import Storages
    from hotloop.probe.virtual_gpu.training import Training
    from hotloop.probe.virtual_gpu.world import World

    device = torch_cuda.Device(**{**order["device"], "capability": tuple(order["device"]["capability"])})
    allocator = CachingAllocator(order.get("limit"))
    training = Training(lambda: steps.after_step())
    storages = Storages(training.place, allocator)
    training.storages = storages
    kernels = DeviceKernels(device.capability)
    steps = VirtualSteps(order["configurations"], storages, training, kernels, order["workspace"], folder)
    torch_cuda.answer_for(device, allocator)
    let_fake_parameters_be()
    training.install()
    world = World(storages, lambda tensor: steps.current.resize(tensor) if steps.current else tensor)
    steps.assumptions = world.assumptions
    world.__enter__()
    kernels.install()
    # The device would have a thread of its own, which knows nothing of the world.
    torch.autograd.set_multithreading_enabled(False)
    atexit.register(steps.write)
