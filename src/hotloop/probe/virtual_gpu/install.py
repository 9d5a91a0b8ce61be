"""Put the virtual GPU into this process; called from `sitecustomize`, before any of the user's code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.probe.virtual_gpu.native import NotToBeHad, load_device_guard


def load(order: dict[str, Any], folder: Path) -> bool:
    """Make torch's fake tensors possible on "cuda", before torch is imported; return whether that is so.

    Args:
        order: `{"device", "cache"}` and those of `VirtualSteps`.
        folder: where it is said why not.
    """
    try:
        load_device_guard(Path(order["cache"]), folder)
    except NotToBeHad as reason:
        (folder / f"virtual-failed-{os.getpid()}").write_text(str(reason))
        return False
    return True


def install(
    order: dict[str, Any], folder: Path, when_imported: Callable[[str, Callable[[], None]], None]
) -> None:
    """Put the device into this process, right after torch has been imported.

    Args:
        order: as for `load`.
        folder: where reports go.
        when_imported: calls a function after the first import of a module.
    """
    import torch

    from hotloop.probe.virtual_gpu import torch_cuda
    from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
    from hotloop.probe.virtual_gpu.collectives import stand_in_for_others
    from hotloop.probe.virtual_gpu.corrections import DeviceKernels, let_data_be_moved, let_fake_parameters_be
    from hotloop.probe.virtual_gpu.cpu_switches import ignore_cpu_switches
    from hotloop.probe.virtual_gpu.ctc import give_ctc_its_lengths
    from hotloop.probe.virtual_gpu.lazy_modules import let_lazy_modules_wait
    from hotloop.probe.virtual_gpu.sparse import install_sparse
    from hotloop.probe.virtual_gpu.steps import VirtualSteps
    from hotloop.probe.virtual_gpu.storages import Storages
    from hotloop.probe.virtual_gpu.tensor_faces import behave_like_tensors
    from hotloop.probe.virtual_gpu.training import Training
    from hotloop.probe.virtual_gpu.world import World

    device = torch_cuda.Device(**{**order["device"], "capability": tuple(order["device"]["capability"])})
    allocator = CachingAllocator(order.get("limit"))
    training = Training()
    storages = Storages(training.place, allocator)
    training.storages = storages
    storages.follow_resizing()
    kernels = DeviceKernels(device.capability)
    steps = VirtualSteps(order, storages, training, kernels, folder)
    training.on_step = steps.after_step
    torch_cuda.answer_for(device, allocator)
    stand_in_for_others()
    let_fake_parameters_be()
    let_data_be_moved()
    let_lazy_modules_wait()
    behave_like_tensors(when_imported)
    ignore_cpu_switches(when_imported)
    give_ctc_its_lengths()
    install_sparse()
    training.install()
    world = World(storages, lambda tensor: steps.current.resize(tensor) if steps.current else tensor)
    training.adopt = world.adopt
    world.adopt_batches()
    world.adopt_labels()
    world.give_arrays()
    world.follow_threads()
    steps.assumptions = lambda: world.assumptions
    steps.look.num_epochs = lambda: world.num_epochs
    torch._C._set_only_lift_cpu_tensors(
        True
    )  # `torch.tensor(0.0, device="cuda")` is made on the CPU and copied
    world.__enter__()
    kernels.install()
    torch.backends.mha.set_fastpath_enabled(False)  # nested tensors cannot be fake; for inference alone
    # The device would have a thread of its own, which knows nothing of the world.
    torch.autograd.set_multithreading_enabled(False)
