"""Where a module may be captured as a CUDA graph, and what a capture that fails leaves behind."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.optimize.program.containers import tensors_in


@contextmanager
def capture_place(device: Any) -> Iterator[None]:
    """Capture on the module's device, in this thread alone, and give stream and generator back after a failure.

    A capture in CUDA's `global` mode is void when any thread allocates pinned memory or asks for an event, and that
    thread fails: threads of loaders and prefetchers do both. A capture that raises leaves its stream the current one,
    and the generator in the mode of a capture, in which the next dropout raises (seen in torch 2.13's
    `torch.cuda.graph`).
    """
    if device.type != "cuda":
        yield
        return
    import torch

    own = torch.cuda.graph
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream()
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        kept = generator.clone_state()
        try:
            torch.cuda.graph = functools.partial(own, capture_error_mode="thread_local")
            yield
        except BaseException:
            torch.cuda.set_stream(stream)
            generator.graphsafe_set_state(kept)
            raise
        finally:
            torch.cuda.graph = own


def run_without_waits(module: Any, samples: Any, device: Any) -> None:
    """Run a forward and its backward once, with an error where the host waits for the device: no graph can hold that.

    That error would be raised in all threads: beside others nothing is run, and the capture fails by itself.

    Raises:
        RuntimeError: it waits; whatever else the forward raises, too.
    """
    if device.type != "cuda" or threading.active_count() > 1:
        return
    import torch

    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        outputs = [each for each in tensors_in(module.forward(*samples)) if each.requires_grad]
        wanted = [each for each in (*module.parameters(), *samples) if each.requires_grad]
        if outputs and wanted:
            torch.autograd.grad(
                outputs, wanted, [torch.zeros_like(each) for each in outputs], allow_unused=True
            )
    finally:
        torch.cuda.set_sync_debug_mode(before)
