"""A program that ran out of memory: what asked for how much, what held the rest, and what would make it fit."""

from __future__ import annotations

import msgspec

from hotloop.model.memory_account import HeldLine, HeldTensor
from hotloop.model.optimization import Numerics


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A change that takes less memory.

    Attributes:
        change: what to do, in words.
        numerics: whether the program computes the same with it.
        saved_bytes: at most; None: not known.
        basis: what that figure is of.
        enough: whether the most that it can save would have made the failing request fit; None: not known.
        optimization: its name in the catalogue; None: it has none.
    """

    change: str
    numerics: Numerics
    saved_bytes: int | None
    basis: str
    enough: bool | None = None
    optimization: str | None = None


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A container, an array or a tensor that a name of the program's holds, and that is part of no model.

    Attributes:
        name: `history`, `self.cache`, `logs['loss']`.
        path: of the source.
        line: that adds to it, or makes it; None: not found there.
        function: the function or the class that has the name; `<module>`: a global.
        kind: `list`, `dict`, `ndarray`, `Tensor`.
        num: entries; None: it has none.
        held_bytes: judged by some of its entries; what a graph keeps is not in it.
        keeps_graph: tensors in it have a graph.
    """

    name: str
    path: str
    line: int | None
    function: str
    kind: str
    num: int | None
    held_bytes: float
    keeps_graph: bool


class OutOfMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the end of a program for want of memory.

    Attributes:
        error: the words it ended with; empty: the kernel killed it.
        killed: the kernel ended it.
        device: whose memory: `cpu`, `cuda:0`.
        asked_bytes: of the request that failed; None: not known.
        at: where it was made, the innermost line outside torch; None: not known.
        user_line: the innermost line of the program's own, as file:line, where that is another one.
        phase: of the step; None: not known.
        limit: what has the limit: `ulimit -v`, the container, the device's name; None: not known.
        limit_bytes: the limit.
        free_bytes: what of it was free.
        allocated_bytes: of a device, what its tensors took by torch's own count.
        reserved_bytes: of a device, what torch's allocator held, used or not.
        resident_bytes: of the process on the host.
        held_bytes: of all tensors that were found on that device.
        by_class: the same by class.
        lines: the lines whose tensors held most.
        others: tensors of no model and no optimizer.
        holders: what the program's own names hold, the largest first.
        in_worker: it was a loader worker that ran out of memory.
        batch: the last batch beside the earlier ones, in words; empty: not known.
        num_steps: that it had taken.
        followed: every storage was followed in a run made for it; otherwise the tensors alone that Python can reach.
        remedies: changes that take less, the exact ones first.
        snapshot: file for torch's viewer; None: none was made.
        method: how it was found.
    """

    error: str
    killed: bool = False
    device: str
    asked_bytes: int | None
    at: HeldLine | None
    user_line: str | None = None
    phase: str | None
    limit: str | None
    limit_bytes: int | None
    free_bytes: int | None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    resident_bytes: int | None = None
    held_bytes: int
    by_class: dict[str, int]
    lines: tuple[HeldLine, ...] = ()
    others: tuple[HeldTensor, ...] = ()
    holders: tuple[Holder, ...] = ()
    in_worker: bool = False
    batch: str = ""
    num_steps: int | None = None
    followed: bool = False
    remedies: tuple[Remedy, ...] = ()
    snapshot: str | None = None
    method: str = ""
