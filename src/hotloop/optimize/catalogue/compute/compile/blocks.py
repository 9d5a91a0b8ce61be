"""The activation of compile for repeated blocks: each is compiled in place, and all share the code of the first."""

from __future__ import annotations

import inspect
from typing import Any

from hotloop.optimize.compilation.compiled_forward import num_graph_breaks, num_graphs
from hotloop.probe.activation.knob import Knob
from hotloop.probe.hook_points.inner_call import InnerCall
from hotloop.probe.hook_points.root_hook import PLACE


class CompiledBlocks(Knob):
    """Compiles the entries of one container of the root.

    Args:
        mode: of torch.compile.
        dynamic: None: torch decides after the first recompilation.
        path: of the container: `transformer.h`.
        settle_steps: see `Knob`; None: it is on from the start.
    """

    lasting = True

    def __init__(self, mode: str, dynamic: bool | None, path: str, settle_steps: int | None = None) -> None:
        self._mode = None if mode == "default" else mode
        self._dynamic = dynamic
        self._path = path
        self.settle_steps = settle_steps or 0
        self._is_on = settle_steps is None
        self._num_calls = 0
        self._num_blocks = 0
        self._failed = ""
        self._before = 0
        self._blocks: list[tuple[Any, Any]] = []
        """With what each has to call while on."""

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """Prepare the blocks; the root's own call stays."""
        import torch

        try:
            container = module.get_submodule(self._path)
        except AttributeError:
            return call
        self._before = num_graphs()
        compile_ = inspect.unwrap(torch.compile)
        for block in container.children():
            if block.__dict__.get(PLACE) is None:
                own = block._call_impl
                compiled = compile_(own, mode=self._mode, dynamic=self._dynamic)
                self._blocks.append((block, self._guarded(own, compiled)))
        self._num_blocks = len(self._blocks)
        if self._is_on:
            self.switch(True)
        return call

    def _guarded(self, own: Any, compiled: Any) -> Any:
        """Return a call that goes on with the block's own where compilation fails."""
        import torch._dynamo.exc

        failures = torch._dynamo.exc.TorchDynamoException

        def run(*args: Any, **kwargs: Any) -> Any:
            if self._failed:
                return own(*args, **kwargs)
            try:
                output = compiled(*args, **kwargs)
            except failures as error:
                self._failed = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
                return own(*args, **kwargs)
            self._num_calls += 1
            return output

        return InnerCall(run, own)

    def switch(self, on: bool) -> None:
        """Let the blocks call compiled code, or their own."""
        self._is_on = on
        for block, run in self._blocks:
            if on:
                block.__dict__[PLACE] = run
            elif block.__dict__.get(PLACE) is run:
                del block.__dict__[PLACE]

    def effect(self) -> tuple[bool, str]:
        """Return whether graphs were compiled and called."""
        if self._failed:
            return False, f"compilation failed: {self._failed}"
        if not self._num_calls:
            return False, f"no block of {self._path} was compiled"
        graphs = num_graphs() - self._before
        said = f"{graphs} compiled graphs for {self._num_blocks} blocks of {self._path}"
        return graphs > 0, f"{said}, {self._num_calls} calls, {num_graph_breaks()} graph breaks"
