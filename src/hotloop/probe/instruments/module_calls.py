"""When each module's forward ran, by torch's global module hooks."""

from __future__ import annotations

from threading import get_ident
from time import monotonic_ns
from typing import Any

from hotloop.probe.instruments.module_sizes import ModuleSizes
from hotloop.probe.probe import Probe

MAX_CALLS = 20_000
"""What comes after them is not kept."""


class ModuleCalls:
    """Forwards that keep a graph, in the thread that started it.

    Args:
        probe: the probe.
        sizes: told of each model that is called as a whole.
    """

    def __init__(self, probe: Probe, sizes: ModuleSizes) -> None:
        self._probe = probe
        self._sizes = sizes
        self._handles: list[Any] = []
        self._thread = 0
        self._open: list[list[int]] = []
        self._calls: list[list[int]] = []

    def start(self) -> None:
        """Hook the calls."""
        from torch.nn.modules import module

        self._thread = get_ident()
        self._handles = [
            module.register_module_forward_pre_hook(self._begins),
            module.register_module_forward_hook(self._ends, always_call=True),
        ]

    def stop(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def value(self) -> list[list[int]]:
        """Return number of the module, begin and end (ns), and depth of each call, in the order of their ends."""
        return self._calls

    def _begins(self, model: Any, args: Any) -> None:  # noqa: ARG002 - torch's signature
        if get_ident() != self._thread:
            return
        with self._probe.survive("memory:begin"):
            if not self._open:
                self._sizes.add_model(model)
            self._open.append([self._sizes.number(model), monotonic_ns()])

    def _ends(self, model: Any, args: Any, output: Any) -> None:  # noqa: ARG002 - torch's signature
        if get_ident() != self._thread or not self._open:
            return
        with self._probe.survive("memory:end"):
            number, begin_ns = self._open.pop()
            # What a backward calls again it also releases again.
            if self._keeps_graph() and len(self._calls) < MAX_CALLS:
                self._calls.append([number, begin_ns, monotonic_ns(), len(self._open)])

    def _keeps_graph(self) -> bool:
        from torch import is_grad_enabled

        return is_grad_enabled() and not self._probe.in_backward
