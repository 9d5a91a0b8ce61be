"""The activation of preallocate_longest: one forward and backward at the longest length, before the first."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.dataset.lengths import read_lengths
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.probe.activation.activation import Activation


class LongestFirst(Activation):
    """Stretches the first batch of a model."""

    def __init__(self) -> None:
        self._dataset: Any = None
        self._ran: tuple[int, int] | None = None
        self._reason = "no loader over a map-style data set was made"

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Remember the data set that training shuffles, else the first one."""
        dataset = keywords.get("dataset")
        if hasattr(dataset, "__getitem__") and (self._dataset is None or keywords.get("shuffle")):
            self._dataset = dataset
        return keywords

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """Return a call that runs the longest batch before its first."""
        waiting = True

        def first(*args: Any, **kwargs: Any) -> Any:
            nonlocal waiting
            if waiting:
                waiting = False
                self._run(module, call, args, kwargs)
            return call(*args, **kwargs)

        return first

    def _run(self, module: Any, call: Any, args: Any, kwargs: Any) -> None:
        import torch

        if self._dataset is None:
            return
        try:
            longest = max(read_lengths(self._dataset))
        except CannotKeep as refusal:
            self._reason = str(refusal)
            return
        tensors = [
            one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor) and one.dim() > 1
        ]
        if not tensors or tensors[0].shape[1] >= longest:
            self._reason = "its inputs are no batches x lengths that are shorter than the longest sample"
            return
        length = tensors[0].shape[1]

        def stretched(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[1] != length:
                return value
            return value.index_select(1, torch.arange(longest, device=value.device) % length)

        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        devices = [tensors[0].device.index or 0] if tensors[0].is_cuda else []
        with torch.random.fork_rng(devices):
            output = call(*map(stretched, args), **{name: stretched(value) for name, value in kwargs.items()})
            losses = [one.float().sum() for one in _floating(output) if one.requires_grad]
            if losses:
                torch.stack(losses).sum().backward()
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(buffers[name])
        module.zero_grad(set_to_none=True)
        self._ran = (length, longest)

    def effect(self) -> tuple[bool, str]:
        """Return whether the longest batch was run."""
        if self._ran is None:
            return False, self._reason
        return True, f"a first batch of length {self._ran[0]} was run at length {self._ran[1]} before"


def _floating(output: Any) -> list[Any]:
    """Return the floating-point tensors of a model's output."""
    if hasattr(output, "is_floating_point"):
        return [output] if output.is_floating_point() else []
    parts = (
        output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ()
    )
    return [one for part in parts for one in _floating(part)]
