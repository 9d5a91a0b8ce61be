"""Exchange parts of a model, once they were seen to compute the same on what the program gave them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from hotloop.optimize.comparison.exchange import Exchange
from hotloop.optimize.evidence import evidence
from hotloop.patterns.refusal import NotReached, NotThis
from hotloop.probe.activation.knob import Knob


class ComparedSwap(Knob):
    """Compares in the first training forward of each root, and exchanges what agrees.

    Args:
        at_once: from the second training forward on; else when it is switched.
    """

    settle_steps = 1
    nothing = "nothing to exchange ran in a training forward"

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._is_on = False
        self._agreed: list[Exchange] = []
        self._differences: list[float] = []
        self._left: list[str] = []
        self._under_way: list[tuple[list[Exchange], list[Any]]] = []

    @abstractmethod
    def found(self, root: Any) -> tuple[Sequence[Exchange], Sequence[str]]:
        """Return what can be exchanged in a model, and why other parts are left."""

    def kernels(self) -> str:
        """Return what is known of the kernels that run, for the evidence."""
        return ""

    def on_root(self, module: Any) -> None:
        """Let the modules in which something can be exchanged be compared in the forward that follows."""
        exchanges, left = self.found(module)
        self._left += left
        agreed: list[Exchange] = []
        handles = [
            each.register_forward_hook(self._comparing(one, agreed), with_kwargs=True)
            for one in exchanges
            for each in one.modules
        ]
        self._under_way.append((agreed, handles))

    def on_forward_inputs(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
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
        if self._under_way:
            self._under_way.clear()
            self.switch(self._is_on)  # a comparison ends with the program's own
        return output

    def _comparing(self, exchange: Exchange, agreed: list[Exchange]) -> Any:
        from hotloop.optimize.comparison.compare import Comparison

        def hook(module: Any, args: Any, kwargs: Any, _: Any) -> None:
            if any(said.startswith(exchange.place) for said in self._left):
                return
            try:
                self._differences.append(Comparison(module, exchange).run(args, kwargs))
                if exchange not in agreed:
                    agreed.append(exchange)
            except NotReached:
                return
            except NotThis as reason:
                self._leave(exchange, agreed, str(reason))
            except Exception as error:  # whatever the program's module raises when it is run again
                self._leave(exchange, agreed, f"{type(error).__name__}: {str(error).strip()[:200]}")

        return hook

    def _leave(self, exchange: Exchange, agreed: list[Exchange], reason: str) -> None:
        self._left.append(f"{exchange.place}: {reason}")
        for known in (agreed, self._agreed):
            known[:] = [each for each in known if each is not exchange]
        exchange.put(False)

    def switch(self, on: bool) -> None:
        """Exchange what agreed, or put the program's own back."""
        self._is_on = on
        for each in self._agreed:
            each.put(on)

    def effect(self) -> tuple[bool, str]:
        """Return whether what was exchanged ran, and how near it came to the program's own."""
        if not self._agreed:
            return False, evidence("", self._left, self.nothing)
        num = sum(each.num_calls for each in self._agreed)
        names = ", ".join(each.place for each in self._agreed)
        said = f"{names}: outputs and gradients within {max(self._differences):.1e} of the program's own; "
        said += f"{num} calls counted{self.kernels()}"
        return num > 0, evidence(said, self._left)
