"""`--nvtx`: a range for each phase, so that a capture of Nsight Systems shows steps as this tool names them."""

from __future__ import annotations

from typing import Any

from hotloop.probe.live.phases import PHASES, decoded
from hotloop.probe.record.events import Kind


def follower() -> Nvtx:
    """Return what pushes the ranges.

    Raises:
        RuntimeError: this torch has no CUDA.
    """
    import torch

    # A range needs no device, and asking for one would begin CUDA before the program does.
    if torch.version.cuda is None:
        raise RuntimeError("this torch has no CUDA, and NVTX is NVIDIA's")
    return Nvtx(torch.cuda.nvtx)


class Nvtx:
    """Follows a recorder.

    Args:
        nvtx: `torch.cuda.nvtx`.
    """

    def __init__(self, nvtx: Any) -> None:
        self._nvtx = nvtx
        self._open: list[Kind] = []

    def keep(self, event: int) -> None:
        """Begin or end a range."""
        kind, _, ends, _ = decoded(event)
        if kind not in PHASES:
            return
        if not ends:
            self._open.append(kind)
            self._nvtx.range_push(f"hotloop {PHASES[kind]}")
            return
        while kind in self._open:  # what an exception left open ends with what it was in
            self._nvtx.range_pop()
            if self._open.pop() is kind:
                break

    def flush(self) -> None:
        """Nothing is pending."""
