"""How long a module takes in half precision and in fp32, forward and backward, on inputs that it was just given."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from hotloop.optimize.program.containers import map_tensors, tensors_in

REPEATS = 5
"""Of each way, in turns; the fastest counts. The first run of either is left out."""


def both_ways(module: Any, args: Any, kwargs: Any, dtype: Any) -> tuple[float, float]:
    """Return the seconds under autocast to `dtype` and without it.

    The module's buffers, its parameters' gradients and the random numbers of the program stay as they were.

    Raises:
        Exception: the module cannot be run by itself; whatever it raised.
    """
    import torch

    device = next((tensor.device for tensor in tensors_in((args, kwargs))), torch.device("cpu"))
    # Others in their place: the backward that is still to come would refuse buffers that were written to.
    buffers = [(part, dict(part._buffers)) for part in module.modules()]
    states = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    times: tuple[list[float], list[float]] = ([], [])
    try:
        for part, own in buffers:
            part._buffers.update({name: one.clone() for name, one in own.items() if one is not None})
        for _ in range(REPEATS + 1):
            for spent, half in zip(times, (True, False), strict=True):
                spent.append(_once(module, args, kwargs, device, dtype if half else None))
    finally:
        torch.set_rng_state(states[0])
        if states[1] is not None:
            torch.cuda.set_rng_state(states[1], device)
        for part, own in buffers:
            part._buffers.update(own)
    return min(times[0][1:]), min(times[1][1:])


def in_full(value: Any) -> Any:
    """Return tensors of half precision in fp32, what an operator outside of autocast is given."""
    import torch

    return map_tensors(
        value, lambda one: one.float() if one.dtype in (torch.float16, torch.bfloat16) else one
    )


def _once(module: Any, args: Any, kwargs: Any, device: Any, dtype: Any) -> float:
    """Return the time of one forward and backward; dtype None: without autocast, casts of the inputs included."""
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
    if made:
        torch.autograd.grad(
            made, [*inputs, *learned], [torch.ones_like(one) for one in made], allow_unused=True
        )
    _wait(device)
    return perf_counter() - began


def _wait(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
