"""tf32_matmul and kernel_autotune: they need a device, and say so without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.compute.kernel_autotune.row import KernelAutotune
from hotloop.optimize.catalogue.precision.tf32_matmul.row import Tf32Matmul
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, root


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "TF32 needs an NVIDIA GPU"),
        ({"device": "cuda", "hip_version": "6.4.43482"}, "ROCm"),
        ({"device": "cuda", "matmul_precision": "medium"}, "already sets matmul precision 'medium'"),
        ({"device": "cuda", "autocast_dtype": "bfloat16"}, "already runs under autocast"),
    ],
)
def test_tf32_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        Tf32Matmul().candidates(observation(**facts))


def test_tf32_is_checked_for_parity() -> None:
    (candidate,) = Tf32Matmul().candidates(observation(device="cuda"))
    assert candidate.numerics == "tolerance"


@pytest.mark.parametrize(
    ("layers", "expects_much"),
    [({"Linear": 8}, True), ({"Conv2d": 1, "Linear": 50}, True), ({"Conv2d": 53, "Linear": 1}, False)],
)
def test_convolutions_are_in_tf32_already(layers: dict[str, int], expects_much: bool) -> None:
    (candidate,) = Tf32Matmul().candidates(observation(device="cuda", roots=(root(layer_counts=layers),)))
    assert (candidate.expected > 1.2) is expects_much


def test_tf32_wins_against_the_program_and_is_no_effect_on_the_cpu() -> None:
    activation = Tf32Matmul().activation({})
    activation.on_torch()
    torch.set_float32_matmul_precision("highest")
    model = nn.Linear(2, 2)
    activate(activation, model)
    model(torch.ones(1, 2))
    assert torch.get_float32_matmul_precision() == "high"
    assert activation.effect() == (False, "the model is on cpu")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "only cuDNN and MIOpen"),
        ({"device": "cuda", "deterministic": True}, "deterministic"),
        ({"device": "cuda", "cudnn_benchmark": True}, "on already"),
        ({"device": "cuda", "roots": (root(layer_counts={"Linear": 1}),)}, "no convolution"),
    ],
)
def test_autotuning_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        KernelAutotune().candidates(observation(**facts))


def test_autotuning_on_rocm_sets_what_miopen_reads() -> None:
    (candidate,) = KernelAutotune().candidates(observation(device="cuda", hip_version="6.4.43482"))
    environment = KernelAutotune().environment(candidate.params)
    assert environment == {"MIOPEN_FIND_MODE": "NORMAL", "PYTORCH_TUNABLEOP_ENABLED": "1"}
    assert candidate.touches_numbers, "other kernels are judged by the floor that rounding gives"
    (plain,) = KernelAutotune().candidates(observation(device="cuda"))
    assert plain.params == {}
    assert KernelAutotune().environment({}) == {}


def test_autotuning_wins_against_a_seeding_function() -> None:
    activation = KernelAutotune().activation({})
    activation.on_torch()
    torch.backends.cudnn.benchmark = False
    model = nn.Linear(2, 2)
    activate(activation, model)
    model(torch.ones(1, 2))
    assert torch.backends.cudnn.benchmark
    assert activation.effect() == (False, "the model is on cpu: nothing is chosen by measuring")
    torch.backends.cudnn.benchmark = False
    assert "off again" in activation.effect()[1]


def test_unknown_find_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="miopen_find_mode is 'SLOW'; allowed: NORMAL"):
        KernelAutotune().validate({"miopen_find_mode": "SLOW"})
