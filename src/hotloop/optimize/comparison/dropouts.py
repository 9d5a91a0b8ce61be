"""Dropout left out, and written down: two ways to compute the same can then be compared."""

from __future__ import annotations

from typing import Any

from torch.nn import functional
from torch.overrides import TorchFunctionMode


class Dropouts(TorchFunctionMode):  # type: ignore[misc]
    """While on, dropout drops nothing.

    Attributes:
        rates: what would have been dropped, call by call; those of nothing are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[float] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch, without its dropout."""
        kwargs = dict(kwargs or {})
        if func is functional.dropout:
            p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            training = kwargs.get("training", args[2] if len(args) > 2 else True)
            self._note(p if training else 0.0)
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            self._note(kwargs.get("dropout_p", 0.0))
            kwargs["dropout_p"] = 0.0
        return func(*args, **kwargs)

    def _note(self, p: float) -> None:
        if p:
            self.rates.append(round(float(p), 6))
