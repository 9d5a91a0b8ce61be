"""A module by itself in half precision and in fp32, forward and backward, on inputs that it was just given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from time import perf_counter
from typing import Any

from hotloop.optimize.comparison.compare import LARGEST
from hotloop.optimize.comparison.same_values import along
from hotloop.optimize.comparison.unseen import unseen
from hotloop.optimize.program.containers import map_tensors, tensors_in

REPEATS = 5
"""Of each way, in turns; the fastest counts. The first run of either is left out."""


def both_times(module: Any, args: Any, kwargs: Any, dtype: Any) -> tuple[float, float]:
    """Return the seconds under autocast to `dtype` and without it.

    Raises:
        Exception: the module cannot be run by itself; whatever it raised.
    """
    times: tuple[list[float], list[float]] = ([], [])
    with _by_itself(module, args, kwargs) as device:
        for _ in range(REPEATS + 1):
            for spent, half in zip(times, (True, False), strict=True):
                spent.append(_once(module, args, kwargs, device, dtype if half else None)[0])
    return min(times[0][1:]), min(times[1][1:])


def both_values(module: Any, args: Any, kwargs: Any, dtype: Any) -> float:
    """Return how far outputs and gradients under autocast to `dtype` are from those without it, relative to their size.

    Not a number where one of them holds none and the other does.

    Raises:
        Exception: the module cannot be run by itself; whatever it raised.
    """
    runs = []
    for each in (dtype, None):
        with _by_itself(module, args, kwargs) as device:  # dropout draws the same numbers again
            runs.append(_once(module, args, kwargs, device, each)[1:])
    (outputs, gradients), (own_outputs, own_gradients) = runs
    apart = [*_apart(outputs, own_outputs, 0.0), *_apart(gradients, own_gradients, LARGEST)]
    return max(apart, key=lambda each: (isnan(each), each), default=0.0)


def _apart(half: Sequence[Any], full: Sequence[Any], floor: float) -> list[float]:
    """Return differences relative to each one's size, or to a share of the largest one's."""
    pairs = [
        (a.float(), b.float()) for a, b in zip(half, full, strict=True) if a is not None and b is not None
    ]
    largest = max((float(own.norm()) for _, own in pairs), default=0.0)
    return [float((one - own).norm()) / max(float(own.norm()), floor * largest, 1e-30) for one, own in pairs]


@contextmanager
def _by_itself(module: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield the device; the module's buffers and the random numbers of the program stay as they were."""
    import torch

    device = next((tensor.device for tensor in tensors_in((args, kwargs))), torch.device("cpu"))
    # Others in their place: the backward that is still to come would refuse buffers that were written to.
    buffers = [(part, dict(part._buffers)) for part in module.modules()]
    states = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        for part, own in buffers:
            part._buffers.update({name: one.clone() for name, one in own.items() if one is not None})
        with unseen():
            yield device
    finally:
        torch.set_rng_state(states[0])
        if states[1] is not None:
            torch.cuda.set_rng_state(states[1], device)
        for part, own in buffers:
            part._buffers.update(own)


def in_full(value: Any) -> Any:
    """Return tensors of half precision in fp32, what an operator outside of autocast is given."""
    import torch

    return map_tensors(
        value, lambda one: one.float() if one.dtype in (torch.float16, torch.bfloat16) else one
    )


def _once(module: Any, args: Any, kwargs: Any, device: Any, dtype: Any) -> tuple[float, list[Any], list[Any]]:
    """Return the time of one forward and backward, its outputs and gradients.

    Args:
        module: to be run.
        args: of its call.
        kwargs: of its call.
        device: that it is on.
        dtype: of autocast; None: without it, casts of the inputs included.
    """
    import torch

    inputs: list[Any] = []

    def fresh(tensor: Any) -> Any:
        copied = tensor.detach().clone()  # modules that work in place are many
        if not tensor.requires_grad:
            return copied
        inputs.append(copied.requires_grad_())
        return copied.clone()

    with torch.enable_grad():
        args, kwargs = map_tensors(args, fresh), map_tensors(kwargs, fresh)
    learned = [parameter for parameter in module.parameters() if parameter.requires_grad]
    _wait(device)
    began = perf_counter()
    with (
        torch.enable_grad(),
        torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None),
    ):
        if dtype is None:
            args, kwargs = in_full(args), in_full(kwargs)
        output = module.forward(*args, **kwargs)
    made = [one for one in tensors_in(output) if one.requires_grad]
    gradients: list[Any] = []
    if made:
        weights = [
            along(one, 0) for one in made
        ]  # of ones alone, a normalization's gradient is nothing but rounding
        gradients += torch.autograd.grad(made, [*inputs, *learned], weights, allow_unused=True)
    _wait(device)
    seconds = perf_counter() - began
    return seconds, [one.detach() for one in tensors_in(output) if one.is_floating_point()], gradients


def _wait(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
