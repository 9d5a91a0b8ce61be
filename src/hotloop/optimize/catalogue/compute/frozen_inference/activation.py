"""The activation of frozen_inference."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from hotloop.optimize.comparison.compared_swap import ComparedSwap
from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.evidence import evidence
from hotloop.optimize.program.containers import map_tensors


class FrozenModel(ComparedSwap):
    """Runs forwards under inference mode, with norms folded into the layers before them.

    The first forward shows which norm follows which layer, the second compares.

    Args:
        fold: fold norms.
        at_once: see `ComparedSwap`.
    """

    def __init__(self, *, fold: bool, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._is_on = at_once and not fold
        self._fold = fold
        self._watch: Any = None
        self._found: list[Exchange] = []
        self._num_folded = 0
        self._num_inferred = 0

    def on_root(self, module: Any) -> None:
        """Look on in the forward that follows."""
        if not self._fold:
            return
        from hotloop.optimize.catalogue.compute.frozen_inference.folded_norms import Watch

        if module.training:
            self._left.append("the model is in training mode")
            return
        self._watch = Watch(module)

    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return what was seen to follow one another."""
        return self._watch.exchanges(), ()

    def forward_context(self, module: Any) -> AbstractContextManager[Any] | None:
        """Return inference mode, while this is on."""
        return _Inference(self)

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Give a model that is about to be trained its own layers back."""
        if self._fold and getattr(module, "training", False):
            if self._is_on:
                self.switch(False)
                self._left.append("the model was put in training mode, and has its own layers back")
                self._at_once = False
            return args, kwargs
        args, kwargs = super().on_forward_inputs(module, args, kwargs)
        self._num_folded += self._is_on and bool(self._agreed)
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Return tensors as they are outside of inference mode: the program may change them in place."""
        if self._watch is not None and self._watch.root is module:
            self._watch.end()
            super().on_root(module)
            self._watch = None
        else:
            super().on_forward_output(module, output)
        return map_tensors(output, _outside) if self._is_on else output

    def inferred(self) -> None:
        """Count a forward under inference mode."""
        self._num_inferred += 1

    @property
    def infers(self) -> bool:
        """Whether forwards are to run under inference mode now."""
        return self._is_on

    def effect(self) -> tuple[bool, str]:
        """Return whether norms were folded, and forwards ran under inference mode."""
        said = f"{self._num_inferred} forwards under inference mode"
        if not self._fold:
            return self._num_inferred > 0, said
        if not self._agreed:
            why = "no batch norm was seen to follow a convolution or a linear layer directly"
            return False, evidence("", self._left, why)
        names = ", ".join(each.place for each in self._agreed)
        worst = max(self._differences)
        folded = f"{names}: outputs within {worst:.1e} of the program's own; {self._num_folded} forwards"
        return self._num_folded > 0, evidence(f"{folded}, {said}", self._left)


class _Inference(AbstractContextManager[Any]):
    """Enters inference mode while its owner is on."""

    def __init__(self, owner: FrozenModel) -> None:
        self._owner = owner
        self._mode: Any = None

    def __enter__(self) -> None:
        import torch

        if self._owner.infers:
            self._owner.inferred()
            self._mode = torch.inference_mode()
            self._mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(*error)


def _outside(tensor: Any) -> Any:
    import torch

    return tensor.clone() if tensor.is_inference() and not torch.is_inference_mode_enabled() else tensor
