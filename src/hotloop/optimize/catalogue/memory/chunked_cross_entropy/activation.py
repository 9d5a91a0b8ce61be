"""The activation of chunked_cross_entropy: recognises a loss on a last layer's own output while the program runs."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from hotloop.probe.activation.activation import Activation
from hotloop.probe.hook_points.inner_call import InnerCall
from hotloop.probe.hook_points.root_hook import PLACE


class _Seen(NamedTuple):
    """The last call of a wide layer."""

    layer: Any
    hidden: Any
    output: Callable[[], Any]
    version: int


class ChunkedLoss(Activation):
    """Computes `cross_entropy` by chunks where its input is what a wide linear layer has returned, reshaped at most."""

    def __init__(self) -> None:
        self._seen: _Seen | None = None
        self._num_layers = 0
        self._num_losses = 0
        self._shape: tuple[int, ...] = ()
        self._plain = "no cross_entropy was called in training"

    def on_torch(self) -> None:
        """Look at each call of the function."""
        from torch.nn import functional

        original = functional.cross_entropy

        @functools.wraps(original)
        def cross_entropy(*args: Any, **kwargs: Any) -> Any:
            found = self._chunked(*args, **kwargs)
            return original(*args, **kwargs) if found is None else found

        functional.cross_entropy = cross_entropy

    def on_root(self, module: Any) -> None:
        """Watch the layers that return more than they are given."""
        from torch.nn import Linear

        for part in module.modules():
            watched = type(part) is Linear and part.out_features > part.in_features
            if watched and part is not module and part.__dict__.get(PLACE) is None:
                own = part._call_impl
                part.__dict__[PLACE] = InnerCall(functools.partial(self._call, part, own), own)
                self._num_layers += 1

    def _call(self, layer: Any, own: Any, hidden: Any) -> Any:
        import torch

        output = own(hidden)
        if torch.is_grad_enabled() and output.requires_grad:
            self._seen = _Seen(layer, hidden, weakref.ref(output), output._version)
        return output

    def _chunked(
        self,
        input: Any,
        target: Any,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Any:
        """Return the loss by chunks; None: the program's own call it has to be."""
        import torch

        seen, self._seen = self._seen, None
        if not torch.is_grad_enabled() or not getattr(input, "requires_grad", False):
            return None
        output = None if seen is None else seen.output()
        usual = (weight, size_average, reduce, label_smoothing) == (None, None, None, 0.0)
        if seen is None or output is None or not _is_all_of(input, output) or output._version != seen.version:
            self._plain = "cross_entropy is not given what the last layer returned"
        elif not usual or reduction not in {"mean", "sum"} or target.dim() != 1 or target.is_floating_point():
            self._plain = "cross_entropy weighs classes or labels"
        elif torch.compiler.is_compiling() or seen.layer._forward_hooks or output._backward_hooks:
            self._plain = "something looks at the logits' gradient"
        else:
            from hotloop.optimize.catalogue.memory.chunked_cross_entropy.loss import chunked

            layer, rows = seen.layer, seen.hidden.reshape(-1, seen.hidden.shape[-1])
            self._num_losses, self._shape = self._num_losses + 1, tuple(input.shape)
            return chunked(rows, layer.weight, layer.bias, input, target, ignore_index, reduction)
        return None

    def effect(self) -> tuple[bool, str]:
        """Return whether losses were computed by chunks."""
        if not self._num_losses:
            return False, self._plain if self._num_layers else "no linear layer returns more than it is given"
        rows, classes = self._shape
        return True, f"{self._num_losses} losses on {rows} x {classes} logits by chunks"


def _is_all_of(input: Any, output: Any) -> bool:
    """Whether a matrix is the output itself, or a view of all of it with the same rows."""
    return (
        input.dim() == 2
        and (
            input is output
            or input._base is output
            or (output._base is not None and input._base is output._base)
        )
        and input.data_ptr() == output.data_ptr()
        and input.numel() == output.numel()
        and input.shape[-1] == output.shape[-1]
        and input.is_contiguous()
        and output.is_contiguous()
    )
