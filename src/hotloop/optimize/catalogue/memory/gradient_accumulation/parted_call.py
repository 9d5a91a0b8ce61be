"""The call of a model with its batch in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.optimize.catalogue.memory.gradient_accumulation.batch import (
    Batch,
    CannotSplit,
    Given,
    batch_of,
    joined,
    layout,
)
from hotloop.optimize.catalogue.memory.gradient_accumulation.independence import CannotTell, Trial
from hotloop.optimize.comparison.unseen import ends_a_recomputation
from hotloop.optimize.program.containers import tensors_in
from hotloop.optimize.recomputation.model_blocks import unwrapped
from hotloop.optimize.recomputation.random_state import RandomState
from hotloop.optimize.recomputation.recomputed_call import RecomputedCall
from hotloop.optimize.recomputation.side_effects import side_effect

MAX_TRIALS = 3
"""Batches that may not tell whether samples see each other: a last layer of zeros is none after the first step."""


class PartedCall:
    """Calls one root, and decides whether it is called with parts.

    Args:
        module: the root.
        num_parts: of each batch.
    """

    def __init__(self, module: Any, num_parts: int) -> None:
        self._module = module
        self._num_parts = num_parts
        self._reason = _reason_against(module)
        self._has_rows: dict[Any, tuple[bool, ...]] = {}
        """By the layout of calls that were tried: which tensors have a row for each sample."""
        self._num_trials = 0
        self._doubt = ""
        self._parts: list[RecomputedCall] = []
        self.num_batches = 0

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call in parts.

        Args:
            call: of the whole batch.
        """
        part_call = RecomputedCall(self._module, call)
        self._parts.append(part_call)

        def run(*args: Any, **kwargs: Any) -> Any:
            batch = None if self.reason else self._batch(call, (args, kwargs))
            if batch is None:
                return call(*args, **kwargs)
            is_done, output = self._in_parts(part_call, batch)
            return output if is_done else call(*args, **kwargs)

        return run

    @property
    def reason(self) -> str:
        """Why it is not called with parts any more."""
        return self._reason or next(filter(None, (call.reason for call in self._parts)), "")

    @property
    def left_alone(self) -> str:
        """Why it was not called with parts so far, or is not any more; empty: it was."""
        return self.reason or ("" if self.num_batches else self._doubt)

    @property
    def num_recomputed(self) -> int:
        """How many parts were computed again in the backward."""
        return sum(call.num_recomputed for call in self._parts)

    @property
    def num_calls(self) -> int:
        """How many parts were computed."""
        return sum(call.num_calls for call in self._parts)

    def _batch(self, call: Callable[..., Any], given: Given) -> Batch | None:
        """Return the batch of a call; None: it is not to be seen in parts."""
        seen = (self._module.training, layout(given))
        try:
            batch = batch_of(given, self._has_rows.get(seen))
            bounds = batch.bounds(self._num_parts)
            if seen not in self._has_rows and len(bounds) > 1:
                self._num_trials += 1
                Trial(self._module, call, batch).run(bounds)
                self._has_rows[seen] = batch.has_rows
        except CannotTell as doubt:
            self._doubt = str(doubt)
            self._reason = self._doubt if self._num_trials >= MAX_TRIALS else ""
            return None
        except CannotSplit as reason:
            self._reason = str(reason)
            return None
        except Exception as error:  # a program's model may do anything with a batch that it does not expect
            self._reason = _cannot(error)
            return None
        return batch

    def _in_parts(self, part_call: RecomputedCall, batch: Batch) -> tuple[bool, Any]:
        """Return whether all parts were computed, and their output."""
        random = RandomState([*self._module.parameters(), *self._module.buffers(), *tensors_in(batch.given)])
        bounds = batch.bounds(self._num_parts)
        try:
            parts = [batch.part(*each) for each in bounds]
            output = joined([part_call(*args, **kwargs) for args, kwargs in parts], bounds)
        except Exception as error:  # the program goes on with the whole batch
            if ends_a_recomputation(error):
                raise
            self._reason = str(error) if isinstance(error, CannotSplit) else _cannot(error)
            random.restore()
            return False, None
        self.num_batches += 1
        return True, output


def _cannot(error: Exception) -> str:
    said = next(iter(str(error).splitlines()), "")[:80]
    return f"it cannot be called with parts of a batch ({type(error).__name__}: {said})"


def _reason_against(module: Any) -> str:
    from torch.nn.modules.batchnorm import _NormBase

    if unwrapped(module) is not module:
        return f"{type(module).__name__} expects one forward for each backward"
    for part in module.modules():
        if isinstance(part, _NormBase) and part.track_running_stats:
            return f"{type(part).__name__} would see the statistics of parts of the batch"
    return side_effect(module)
