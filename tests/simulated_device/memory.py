"""Memory of a device with a limit: reserved blocks, contexts, and out of memory in torch's words."""

from __future__ import annotations

from dataclasses import dataclass, field

GIB = 1 << 30
CONTEXT = GIB // 2
"""What a process takes beside its tensors: CUDA's context and loaded kernels."""


@dataclass
class Memory:
    """One device's memory; a process is a number."""

    index: int
    total: int
    held: dict[int, int] = field(default_factory=dict)
    """Reserved by each process, without its context."""
    allocated: int = 0
    reserved: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    allowed: int | None = None
    """What the process that is looked at may reserve; None: as much as there is."""
    num_retries: int = 0
    """How often the process that is looked at had to give its cached blocks back."""
    peak_inactive_split: int = 0
    """The most that lay unused in segments of which a part was in use."""

    @property
    def free(self) -> int:
        return self.total - sum(self.held.values()) - CONTEXT * len(self.held)

    def allocate(self, num_bytes: int, pid: int = 1) -> None:
        """Give a process memory; raises `RuntimeError` in torch's words where there is none."""
        cached = self.reserved - self.allocated if pid == 1 else 0
        more = max(0, num_bytes - cached)
        if pid == 1 and self.allowed is not None and self.reserved + more > self.allowed:
            raise RuntimeError(self.message(num_bytes, pid))
        if more + (0 if pid in self.held else CONTEXT) > self.free:
            raise RuntimeError(self.message(num_bytes, pid))
        self.held[pid] = self.held.get(pid, 0) + more
        if pid == 1:
            self.allocated += num_bytes
            self.reserved += more
            self.peak_allocated = max(self.peak_allocated, self.allocated)
            self.peak_inactive_split = max(self.peak_inactive_split, self.reserved - self.allocated)
            self.peak_reserved = max(self.peak_reserved, self.reserved)

    def release(self, num_bytes: int) -> None:
        """Tensors are gone; the allocator keeps their blocks."""
        self.allocated -= num_bytes
        self.peak_inactive_split = max(self.peak_inactive_split, self.reserved - self.allocated)

    def give_back(self) -> None:
        """The allocator has no block that is large enough: it gives its cache back, and asks again."""
        self.num_retries += 1
        self.held[1] = self.reserved = self.allocated

    def end(self, pid: int) -> None:
        """The process is gone, and all that it held."""
        self.held.pop(pid, None)

    def message(self, num_bytes: int, pid: int) -> str:
        mine = self.held.get(pid, 0) + CONTEXT
        return (
            f"CUDA out of memory. Tried to allocate {num_bytes / GIB:.2f} GiB. GPU {self.index} has a total capacity "
            f"of {self.total / GIB:.2f} GiB of which {self.free / GIB:.2f} GiB is free. Process {pid} has "
            f"{mine / GIB:.2f} GiB memory in use. {self._allowed_info()}"
            f"Of the allocated memory {self.allocated / GIB:.2f} GiB is allocated by PyTorch. "
            "If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
        )

    def _allowed_info(self) -> str:
        return "" if self.allowed is None else f"{self.allowed / GIB:.2f} GiB allowed; "
