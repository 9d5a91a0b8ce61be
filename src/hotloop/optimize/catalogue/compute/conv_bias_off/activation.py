"""The activation of conv_bias_off: which convolution feeds which batch norm, then its bias is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hotloop.optimize.comparison.compared_swap import ComparedSwap
from hotloop.optimize.comparison.exchange import Exchange

if TYPE_CHECKING:
    from hotloop.optimize.catalogue.compute.conv_bias_off.bias_free_forward import Biasless, Pair


class BiasSkip(ComparedSwap):
    """Watches the first training forward of a root, compares in the second, and is on from the third."""

    settle_steps = 2
    nothing = "no convolution with a bias is directly followed by batch norm that trains"

    def __init__(self, *, at_once: bool) -> None:
        super().__init__(at_once=at_once)
        self._watching: list[tuple[Any, Any]] = []
        """Roots and what watches their forward under way."""
        self._biasless: Biasless | None = None
        self._pairs: list[Pair] = []

    def on_root(self, module: Any) -> None:
        """See in the forward that follows what a convolution's output is given to."""
        from hotloop.optimize.catalogue.compute.conv_bias_off.bias_free_forward import Biasless
        from hotloop.optimize.catalogue.compute.conv_bias_off.pattern import ExecutedPairs

        self._biasless = self._biasless or Biasless()
        self._watching.append((module, ExecutedPairs(module)))

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """End the comparison, or the watching: then the next forward is compared."""
        output = super().on_forward_output(module, output)
        for root, watched in self._watching:
            self._pairs, left = watched.end()
            self._left += left
            super().on_root(root)
        self._watching.clear()
        return output

    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return an exchange for each part of the model that holds pairs: the smallest module around them."""
        parts: dict[int, _Part] = {}
        for pair in self._pairs:
            name, around = smallest_around(root, pair)
            part = parts.setdefault(id(around), _Part(name or type(root).__name__, around, self._biasless))
            part.pairs.append(pair)
        return list(parts.values()), []


class _Part(Exchange):
    """The biases of one part of the model."""

    def __init__(self, place: str, module: Any, biasless: Any) -> None:
        super().__init__(place)
        self.modules = [module]
        self.pairs: list[Pair] = []
        self._biasless = biasless

    def put(self, on: bool) -> None:
        """Leave the biases out, or use them again."""
        for pair in self.pairs:
            if on:
                self._biasless.skip(pair, self)
            else:
                self._biasless.use(pair)


def smallest_around(root: Any, pair: Pair) -> tuple[str, Any]:
    """Return path and module of the innermost part of a model that holds a pair."""
    around = "", root
    for path, module in root.named_modules():
        within = {id(each) for each in module.modules()}
        if module is not pair.conv and {id(pair.conv), id(pair.norm)} <= within:
            around = path, module  # outer modules come first
    return around
