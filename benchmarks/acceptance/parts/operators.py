"""The arithmetic of a step against its formula, and MFU against products timed by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from benchmarks.acceptance.hand import seconds_a_step
from benchmarks.acceptance.place import Place
from benchmarks.acceptance.row import Row, Skipped
from hotloop.machine.card.torch_process import torch_rates
from hotloop.model.machine import DeviceRates


def run(place: Place) -> Iterator[Row | Skipped]:
    """Look at large products, eager and compiled."""
    width, layers = place.size(4096, 384), 4
    # Forward, and two products of the same size in the backward; the first layer's input needs no gradient.
    true = 2.0 * width**3 * (3 * layers - 1)
    for words in ((), ("--compile", "default")):
        name = "compiled" if words else "eager"
        observation = place.observe("gemm", *words, seconds=4, deep=("operators", "flops"))
        flops = observation.deep.flops if observation.deep else None
        yield Row(
            what=f"FLOP of a step, {name}",
            ours=flops.flop if flops else None,
            truth=true,
            within=0.01,
            how="the formula",
        )
        operators = observation.deep.operators if observation.deep else None
        if place.on_gpu and operators is not None and observation.step is not None:
            hand, spread = seconds_a_step(place, {name: ("gemm", *words)}, steps=40)
            yield Row(
                what=f"device time of the operators, {name}, s a step",
                ours=operators.device_s,
                truth=hand[name],
                within=max(0.05, spread),
                how="a step that is nothing but kernels, by hand",
            )
    yield _peak(place, width)


def _peak(place: Place, width: int) -> Row:
    """The peak that MFU is a share of, against the same product timed by hand."""
    rates = torch_rates(3)
    device = next(one for one in rates.devices if one.device.startswith(place.device))
    ours = _rate(device)
    x = torch.randn(width, width, device=place.device)
    best = 0.0
    for _ in range(20):
        _wait(place)
        began = time.perf_counter()
        for _ in range(5):
            x @ x
        _wait(place)
        best = max(best, 5 * 2.0 * width**3 / (time.perf_counter() - began))
    return Row(
        what="fastest float32 product, TFLOP/s",
        ours=None if ours is None else ours / 1e12,
        truth=best / 1e12,
        within=0.10,
        how=f"{width} x {width} by hand, the best of 20",
        at_least=True,
    )


def _rate(device: DeviceRates) -> float | None:
    rate = device.matmul_flop_per_s.get("fp32")
    return rate.high if rate else None


def _wait(place: Place) -> None:
    if place.on_gpu:
        torch.cuda.synchronize()
