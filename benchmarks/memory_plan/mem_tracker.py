"""The peak of a program by torch's own MemTracker: `python -m benchmarks.memory_plan.mem_tracker SCRIPT`.

The program runs under FakeTensorMode and `torch.distributed._tools.mem_tracker.MemTracker` from its first line, on the
device guard of hotloop's virtual GPU, since a build of torch for the CPU has none; `.item()` gives 1, so that programs
which print their loss go on. Its statistics of modules are reset before every iteration. Prints the peak in bytes as
the last line.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from hotloop.probe.virtual_gpu.native import load_device_guard

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotloop"


def main() -> None:
    """Run the script of the command line under the tracker."""
    load_device_guard(CACHE, CACHE)
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.nn.modules import module as modules

    from hotloop.probe.virtual_gpu import torch_cuda
    from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
    from hotloop.probe.virtual_gpu.corrections import let_fake_parameters_be

    torch_cuda.answer_for(torch_cuda.Device("A100", (8, 0), 80 << 30, 108), CachingAllocator())
    let_fake_parameters_be()
    torch.autograd.set_multithreading_enabled(False)
    tensor: Any = torch.Tensor
    tensor.item = lambda _: 1.0
    sys.argv = sys.argv[1:]
    tracker = MemTracker()
    failure = None
    depth = [0]

    def enter(*_: Any) -> None:
        if not depth[0]:
            tracker.reset_mod_stats()  # it wants to be told of every further iteration
        depth[0] += 1

    def leave(*_: Any) -> None:
        depth[0] -= 1

    modules.register_module_forward_pre_hook(enter)
    modules.register_module_forward_hook(leave, always_call=True)
    with FakeTensorMode(allow_non_fake_inputs=True), tracker:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except Exception as error:
            failure = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    peaks = tracker.get_tracker_snapshot("peak")
    total = max((sizes["Total"] for device, sizes in peaks.items() if device.type == "cuda"), default=0)
    print(f"\npeak of MemTracker: {total if failure is None else failure}", flush=True)


if __name__ == "__main__":
    main()
