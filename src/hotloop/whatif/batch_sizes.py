"""The model alone on batches of other sizes: what each request waits, and how many are answered."""

from __future__ import annotations

from time import monotonic
from typing import Any

from hotloop.optimize.dataset.memory import allowed_bytes
from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.probe.activation.knob import Bench
from hotloop.probe.record.facts import host_peak_bytes
from hotloop.whatif.device_wait import synchronize

LARGEST = 512
"""Samples."""
CALLS_S, MIN_CALLS, MAX_CALLS = 0.4, 7, 200
"""Of each size: so long, at least and at most so many."""
SLOWEST_S = 2.0
"""A batch that takes longer is the last one."""
GROWS, FLAT = 1.05, 2
"""So many doublings, one after the other, that bring less than this, end it."""
MAX_SHARE = 0.5
"""Of the free memory: a batch twice as large may take no more of it."""


class BatchSizes(Bench):
    """Calls the model with the rows of its last batch repeated, without gradients.

    Args:
        seconds: for all sizes together.
    """

    last = True

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds
        self._calls: dict[int, Any] = {}
        self._last: tuple[Any, Any] = ((), {})

    def activation(self, params: dict[str, Any]) -> BatchSizes:
        """Return what acts."""
        return BatchSizes(params["seconds"])

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """See what is called."""
        self._calls[id(module)] = call
        return call

    def on_forward_inputs(
        self,
        module: Any,  # noqa: ARG002
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, Any]:
        """See what it is given."""
        self._last = (args, kwargs)
        return args, kwargs

    def run(self) -> dict[str, Any]:
        """Return the seconds of each call by the number of samples, and why larger ones are missing."""
        if len(self._calls) != 1:
            return {"missing": "more than one model is called" if self._calls else "no model was called"}
        given = tensors_in(self._last)
        now = next((tensor.shape[0] for tensor in given if tensor.dim()), 0)
        if not now:
            return {"missing": "the model is given no tensor with rows"}
        (call,) = self._calls.values()
        times: dict[str, list[float]] = {}
        why = ""
        until = monotonic() + self._seconds
        for sizes in (_smaller(now), _larger(now)):
            for size in sizes:
                if monotonic() > until:
                    why = "the time for them was over"
                    break
                try:
                    times[str(size)] = _timed(call, _of_size(self._last, now, size), size, given[0].device)
                except Exception as error:  # too large, or made for one size alone
                    why = f"{size} samples: {type(error).__name__}: {error}"
                    break
                if sizes[0] == now and (_is_flat(times, now) or times[str(size)][-1] > SLOWEST_S):
                    break
        return {"now": now, "times": times, "missing": why if len(times) < 2 else ""}


def _smaller(now: int) -> list[int]:
    return [size for size in (1, *(1 << power for power in range(1, now.bit_length()))) if size < now]


def _larger(now: int) -> list[int]:
    sizes = [now]
    while sizes[-1] * 2 <= LARGEST:
        sizes.append(sizes[-1] * 2)
    return sizes


def _of_size(given: Any, now: int, size: int) -> Any:
    """Return a call's arguments with so many rows; they repeat."""
    import torch

    def resized(tensor: Any) -> Any:
        if not tensor.dim() or tensor.shape[0] != now or size == now:
            return tensor
        return tensor.index_select(0, torch.arange(size, device=tensor.device) % now)

    return map_tensors(given, resized)


def _timed(call: Any, given: Any, size: int, device: Any) -> list[float]:
    """Return the seconds of each call, after one that does not count.

    Raises:
        ValueError: what comes out does not have so many rows.
        MemoryError: twice as much would not fit.
    """
    import torch

    args, kwargs = given
    times: list[float] = []
    before = host_peak_bytes() or 0
    with torch.no_grad():
        outputs = tensors_in(call(*args, **kwargs))
        if outputs and not any(tensor.dim() and tensor.shape[0] % size == 0 for tensor in outputs):
            raise ValueError("what comes out does not follow the number of rows")
        del outputs
        allowed = allowed_bytes(MAX_SHARE)
        if allowed is not None and 2 * ((host_peak_bytes() or 0) - before) > allowed:
            raise MemoryError("twice as many would need more memory than may be taken")
        synchronize(device)
        began = monotonic()
        while len(times) < MIN_CALLS or (monotonic() - began < CALLS_S and len(times) < MAX_CALLS):
            start = monotonic()
            call(*args, **kwargs)
            synchronize(device)
            times.append(monotonic() - start)
            if times[-1] > SLOWEST_S:
                break
    return times


def _is_flat(times: dict[str, list[float]], now: int) -> bool:
    """Whether the last doublings brought nothing any more."""
    rates = [int(size) / min(spent) for size, spent in times.items() if int(size) >= now]
    return len(rates) > FLAT and max(rates[-FLAT:]) < GROWS * max(rates[:-FLAT])
