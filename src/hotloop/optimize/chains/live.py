"""The functions of a running model with chains in them, each chain compiled by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hotloop.optimize.chains.pattern import Chain, chains
from hotloop.optimize.comparison.function_code import place_of
from hotloop.optimize.comparison.rewritten import CALL, Change, RewrittenSwap


class ChainSwap(RewrittenSwap):
    """Exchanges the code of functions with chains in them.

    Args:
        at_once: from the second training forward on; else when it is switched.
        backend: of torch.compile.
    """

    settle_steps = 2
    nothing = "no training forward ran a chain of pointwise operations"

    def __init__(self, *, at_once: bool, backend: str = "inductor") -> None:
        super().__init__(at_once=at_once)
        self._backend = backend
        self._texts: dict[str, str] = {}
        self._made: dict[tuple[str, int], Callable[..., Any]] = {}

    def changes(self, source: str) -> Sequence[Change]:
        """Return the functions in which chains stand."""
        here: dict[str, list[Chain]] = {}
        for each in chains(source):
            here.setdefault(each.function, []).append(each)
            self._texts[each.name] = each.text
        return [
            Change(
                name,
                found[0].line,
                frozenset(each.name for each in found),
                {
                    place_of(each.expression): f"{CALL}{each.name}({', '.join(each.arguments)})"
                    for each in found
                },
            )
            for name, found in here.items()
        ]

    def called(self, name: str, names: dict[str, Any]) -> Callable[..., Any]:
        """Return a chain, compiled; the same in all functions of a module."""
        key = (name, id(names))
        if key not in self._made:
            plain = eval(self._texts[name], names)
            self._made[key] = _compiled(plain, self._backend)
        return self._made[key]


def _compiled(plain: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """Return a function that is compiled; where the compiler fails on what it is given, it is computed as it is."""
    import torch

    fused = torch.compile(plain, backend=backend)
    failed = False

    def chain(*args: Any) -> Any:
        nonlocal failed
        if not failed:
            try:
                return fused(*args)
            except Exception:  # the compiler's, or the program's own: then the plain one raises it again
                failed = True
        return plain(*args)

    return chain
