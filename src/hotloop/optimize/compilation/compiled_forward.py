"""Each root called through torch.compile."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from hotloop.optimize.compilation.graph_replays import GRAPH_MODES, GraphReplays
from hotloop.probe.activation.activation import Activation


class CompiledForward(Activation):
    """Compiles the call of each root.

    Args:
        mode: of torch.compile.
        dynamic: None: torch decides after the first recompilation.
    """

    def __init__(self, mode: str, dynamic: bool | None) -> None:
        self._mode = mode
        self._dynamic = dynamic
        self._num_calls = 0
        self._failed = ""
        self._before = 0
        self._graphs = GraphReplays() if mode in GRAPH_MODES else None

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """Return the compiled call; where compilation fails, the program's own call from then on."""
        import torch

        self._before = num_graphs()
        if self._graphs is not None:
            self._graphs.watch(module)
        mode = None if self._mode == "default" else self._mode
        # The probe watches torch.compile for modules that the program compiles; this is not one.
        compiled = inspect.unwrap(torch.compile)(_framed(module, call), mode=mode, dynamic=self._dynamic)

        @functools.wraps(call)
        def run(*args: Any, **kwargs: Any) -> Any:
            if self._failed:
                return call(*args, **kwargs)
            try:
                output = compiled(*args, **kwargs)
            except torch._dynamo.exc.TorchDynamoException as error:
                self._failed = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
                return call(*args, **kwargs)
            self._num_calls += 1
            return output if self._graphs is None else self._graphs.kept(output)

        return run

    def effect(self) -> tuple[bool, str]:
        """Return whether graphs were compiled and called."""
        if self._failed:
            return False, f"compilation failed: {self._failed}"
        if not self._num_calls:
            return False, "no training forward was compiled"
        graphs = num_graphs() - self._before
        breaks = num_graph_breaks()
        said = f"{graphs} compiled graphs, {self._num_calls} calls, {breaks} graph breaks"
        if self._graphs is not None and self._graphs.on_device:
            said = f"{said}, {self._graphs.num_replays} replays of CUDA graphs{_why_skipped()}"
            return graphs > 0 and self._graphs.num_replays > 0, said
        return graphs > 0, said


def _why_skipped() -> str:
    """Why the compiler did not capture what it could have."""
    from torch._dynamo.utils import counters

    num = int(counters["inductor"]["cudagraph_skips"])
    return f" ({num} compiled graphs were left out of them)" if num else ""


def _framed(module: Any, call: Any) -> Any:
    """Return the call in a frame that Dynamo captures; it begins no graph in those of torch.nn."""
    if not type(module).forward.__module__.startswith("torch."):
        return call

    def framed(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return framed


def num_graphs() -> int:
    """Return how many graphs this process has compiled."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def num_graph_breaks() -> int:
    """Return how often what is compiled was interrupted."""
    from torch._dynamo.utils import counters

    return int(sum(counters["graph_break"].values()))
