"""The activation of activation_checkpointing: blocks under torch's checkpoint, chosen by bytes per second."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.recomputation.copies import Copies
from hotloop.optimize.recomputation.model_blocks import blocks, unwrapped
from hotloop.optimize.recomputation.recomputed_call import MIB, RecomputedCall
from hotloop.optimize.recomputation.side_effects import side_effect
from hotloop.probe.activation.activation import Activation
from hotloop.probe.hook_points.inner_call import InnerCall
from hotloop.probe.hook_points.root_hook import PLACE

MEASURED_FORWARD = 2


class CheckpointedBlocks(Activation):
    """Recomputes blocks of the root in the backward.

    Args:
        wanted: `all`; paths of blocks or of containers of blocks; or a share: the blocks that cost least for so much of
            what all of them save.
    """

    def __init__(self, wanted: str | float | list[str]) -> None:
        self._wanted = wanted
        self._calls: dict[str, RecomputedCall] = {}
        self._copies = Copies()
        self._refused: dict[str, str] = {}
        self._num_forwards = 0
        self._reason = ""

    def on_root(self, module: Any) -> None:
        """Put the blocks under checkpoint before the first forward: no step is to reach the old peak."""
        if type(module).__name__ == "DataParallel":
            self._reason = "DataParallel copies the model in every forward"
            return
        found = blocks(module)
        chosen = self._named(module, self._wanted, found) if isinstance(self._wanted, list) else found.items()
        for path, block in chosen:
            if block.__dict__.get(PLACE) is not None:
                continue
            if reason := side_effect(block):
                self._refused[path] = reason
                continue
            call = RecomputedCall(block, block._call_impl, self._copies)
            self._calls[path] = call
            block.__dict__[PLACE] = InnerCall(call, block._call_impl)

    @staticmethod
    def _named(module: Any, paths: list[str], found: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the blocks of the paths that the plan names; a container stands for those in it."""
        named: list[tuple[str, Any]] = []
        for path in paths:
            inside = [
                (each, block)
                for each, block in found.items()
                if path in {each, f"module.{each}"} or f"{each}.".startswith(f"{_bare(path)}.")
            ]
            named += inside or [(path, unwrapped(module).get_submodule(_bare(path)))]
        return named

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Choose once all blocks were measured in a forward that is not the first: kernels are loaded in that."""
        self._num_forwards += 1
        for call in self._calls.values():
            call.measure(self._num_forwards == MEASURED_FORWARD)
        if self._num_forwards == MEASURED_FORWARD + 1 and isinstance(self._wanted, float):
            kept = cheapest(list(self._calls.values()), self._wanted)
            for call in self._calls.values():
                call.is_on = call in kept
        return args, kwargs

    def effect(self) -> tuple[bool, str]:
        """Return whether blocks were computed again, with what they save and cost in a step."""
        acting = {path: call for path, call in self._calls.items() if call.is_on and not call.reason}
        recomputed = {path: call for path, call in acting.items() if call.num_recomputed}
        parts = []
        if recomputed:
            saved = sum(call.saved_bytes for call in recomputed.values()) / MIB
            took = sum(call.forward_s for call in recomputed.values()) * 1e3
            num = sum(call.num_recomputed for call in recomputed.values())
            parts.append(
                f"{len(recomputed)} of {len(self._calls)} blocks ({_listed(recomputed)}) recomputed {num} times; "
                f"in a step {saved:.1f} MiB of saved tensors for {took:.1f} ms of forward"
            )
        given_up = {path: call.reason for path, call in self._calls.items() if call.reason}
        left = {**self._refused, **given_up}
        parts += [f"left alone: {path}: {reason}" for path, reason in list(left.items())[:3]]
        return bool(recomputed), "; ".join(parts) or self._reason or "no block of the model was called"


def cheapest(calls: list[RecomputedCall], share: float) -> list[RecomputedCall]:
    """Return the blocks that save most bytes for their time, until they save a share of what all of them would.

    Args:
        calls: measured.
        share: 0 to 1.
    """
    wanted = share * sum(call.saved_bytes for call in calls)
    chosen: list[RecomputedCall] = []
    saved = 0
    for call in sorted(calls, key=_bytes_per_second, reverse=True):
        if saved >= wanted:
            break
        chosen.append(call)
        saved += call.saved_bytes
    return chosen


def _bare(path: str) -> str:
    return path.removeprefix("module.")


def _bytes_per_second(call: RecomputedCall) -> float:
    return call.saved_bytes / max(call.forward_s, 1e-9)


def _listed(paths: Any) -> str:
    names = list(paths)
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]}"
