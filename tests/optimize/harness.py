"""Applies an activation to a module the way the hook points do, without recording anything."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any

import torch

from hotloop.model.observation import (
    Memory,
    Observation,
    Phase,
    PhaseTime,
    RankObservation,
    RunAccount,
    StepTime,
)
from hotloop.model.program import LoaderFacts, ModuleFacts, OptimizerFacts, ProgramFacts
from hotloop.probe.activation.activation import Activation


def activate(activation: Activation, module: torch.nn.Module) -> None:
    """Hook one root module, in the place that `Module.compile()` uses."""
    inner = module._call_impl
    state: dict[str, Any] = {}

    @functools.wraps(inner)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return inner(*args, **kwargs)
        if not state:
            activation.on_root(module)
            state["context"] = activation.forward_context(module)
            state["call"] = activation.wrap_forward(module, inner)
        args, kwargs = activation.on_forward_inputs(module, args, kwargs)
        with ExitStack() as stack:
            if state["context"] is not None:
                stack.enter_context(state["context"])
            output = state["call"](*args, **kwargs)
        return activation.on_forward_output(module, output)

    module.__dict__["_compiled_call_impl"] = call


def loader(**changes: Any) -> LoaderFacts:
    """Return a plain map-style loader in the training process, changed as asked."""
    plain: dict[str, Any] = {
        "num_workers": 0,
        "batch_size": 8,
        "pin_memory": False,
        "persistent_workers": False,
        "prefetch_factor": None,
        "dataset": "Images",
        "dataset_len": 1000,
        "used_in_step": True,
    }
    return LoaderFacts(**{**plain, **changes})


def root(**changes: Any) -> ModuleFacts:
    """Return a small fp32 convolutional model, changed as asked."""
    plain: dict[str, Any] = {
        "cls": "Net",
        "num_parameters": 1000,
        "dtypes": ("float32",),
        "devices": ("cpu",),
        "layer_counts": {"Conv2d": 4, "Linear": 1},
        "input_shapes": ((8, 3, 32, 32),),
    }
    return ModuleFacts(**{**plain, **changes})


def optimizer(**changes: Any) -> OptimizerFacts:
    """Return a plain AdamW, changed as asked."""
    plain: dict[str, Any] = {
        "cls": "AdamW",
        "num_parameters": 1000,
        "fused": None,
        "foreach": None,
        "supports_fused": True,
    }
    return OptimizerFacts(**{**plain, **changes})


def observation(
    shares: dict[Phase, float] | None = None,
    machine: dict[str, Any] | None = None,
    ranks: int = 1,
    **program: Any,
) -> Observation:
    """Return an observed program: shares of the phases, and facts of the program."""
    facts: dict[str, Any] = {"torch_version": "2.13.0+cpu", "roots": (root(),), "num_threads": 4, **program}
    shares = shares if shares is not None else {Phase.DATA: 0.2, Phase.FORWARD: 0.3, Phase.BACKWARD: 0.5}
    phases = {phase: PhaseTime(part, part) for phase, part in shares.items()}
    step = StepTime(num=50, median_s=1.0, low_s=0.9, high_s=1.1, p50_s=1.0, p95_s=1.1, p99_s=1.2)
    rank = RankObservation(rank=None, pid=1, role="train", step=step, phases=phases)
    return Observation(
        command=("python", "train.py"),
        step=step,
        phases=phases,
        ranks=(rank,) * ranks,
        memory=Memory(peak_bytes=None, device="cpu", method="none"),
        run=RunAccount(wall_s=60.0, parts={}),
        coverage=(),
        program=ProgramFacts(**facts),
        anchor=None,
        machine={"num_cores": 4} if machine is None else machine,
        exit_code=None,
    )
