"""The activation of flash_attention: compare on the first training forward, and exchange what agrees."""

from __future__ import annotations

from typing import Any

from hotloop.optimize.attention.live import CALL, Written, written_by
from hotloop.optimize.attention.refusal import NotThis
from hotloop.probe.activation.knob import Knob

COUNTED_CALLS = 64
"""Calls that are counted after the change; then the functions call torch's own, with no frame of ours between."""


class AttentionSwap(Knob):
    """Exchanges the code of functions that write attention out.

    Args:
        at_once: from the second training forward on; else when it is switched.
    """

    settle_steps = 1

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._is_on = False
        self._roots: set[int] = set()
        self._agreed: list[Written] = []
        self._differences: list[float] = []
        self._left: list[str] = []
        self._num_calls = 0
        self._kernels: set[str] = set()
        self._under_way: list[tuple[list[Written], list[Any]]] = []

    def on_root(self, module: Any) -> None:
        """Let the modules that run such functions be compared in the forward that follows."""
        written, left = written_by(module)
        self._left += left
        agreed: list[Written] = []
        handles = [
            each.register_forward_hook(self._comparing(one, agreed), with_kwargs=True)
            for one in written
            for each in one.modules
        ]
        self._under_way.append((agreed, handles))

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Begin with what agreed in an earlier forward; never within one, parts of which may be computed again."""
        if self._agreed and self._at_once and not self._is_on:
            self.switch(True)
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """End the comparison."""
        for agreed, handles in self._under_way:
            for handle in handles:
                handle.remove()
            self._agreed += [each for each in agreed if each not in self._agreed]
        self._under_way.clear()
        return output

    def _comparing(self, written: Written, agreed: list[Written]) -> Any:
        from hotloop.optimize.attention.compare import Comparison

        def hook(module: Any, args: Any, kwargs: Any, _: Any) -> None:
            if any(said.startswith(written.place) for said in self._left):
                return
            try:
                self._differences.append(Comparison(module, written).run(args, kwargs))
                if written not in agreed:
                    agreed.append(written)
            except NotThis as reason:
                self._leave(written, agreed, str(reason))
            except Exception as error:  # whatever the program's module raises when it is run again
                self._leave(written, agreed, f"{type(error).__name__}: {str(error).strip()[:200]}")

        return hook

    def _leave(self, written: Written, agreed: list[Written], reason: str) -> None:
        self._left.append(f"{written.place}: {reason}")
        agreed[:] = [each for each in agreed if each is not written]

    def switch(self, on: bool) -> None:
        """Put the calls in, or the program's own code back."""
        self._is_on = on
        for each in self._agreed:
            each.put(on, self._counted if self._num_calls < COUNTED_CALLS else _torch_s_own())

    def _counted(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's function, note which kernel it chooses, and give way."""
        self._num_calls += 1
        if self._num_calls == 1:
            self._kernels.add(_kernel(*args, **kwargs))
        if self._num_calls >= COUNTED_CALLS:
            for each in self._agreed:
                each.function.__globals__[CALL] = _torch_s_own()
        return _torch_s_own()(*args, **kwargs)

    def effect(self) -> tuple[bool, str]:
        """Return whether the functions called the fused attention, and how near it came to the program's own."""
        left = "; ".join(f"left: {each}" for each in self._left)
        if not self._agreed:
            return False, left or "no training forward ran attention that is written out"
        names = ", ".join(each.place for each in self._agreed)
        said = f"{names}: outputs and gradients within {max(self._differences):.1e} of the program's own; "
        kernels = ", ".join(sorted(self._kernels)) or "no kernel"
        said += f"{self._num_calls} calls counted, {kernels}"
        return self._num_calls > 0, f"{said}; {left}" if left else said


def _torch_s_own() -> Any:
    from torch.nn import functional

    return functional.scaled_dot_product_attention


def _kernel(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> str:
    """Return which kernel torch takes for a call."""
    import torch
    from torch.nn.attention import SDPBackend

    try:
        chosen = torch._fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    except (AttributeError, RuntimeError, TypeError):
        return "kernel unknown"
    names = {int(getattr(SDPBackend, name).value): name for name in dir(SDPBackend) if name.isupper()}
    return f"kernel {names.get(chosen, chosen)}".lower().replace("_", " ")
