"""allocator_settings, optimizer_memory and chunked_cross_entropy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hotloop.model.optimization import Numerics
from hotloop.optimize.catalogue.memory.allocator_settings.activation import told
from hotloop.optimize.catalogue.memory.allocator_settings.row import AllocatorSettings
from hotloop.optimize.catalogue.memory.chunked_cross_entropy.row import ChunkedCrossEntropy
from hotloop.optimize.catalogue.memory.optimizer_memory.activation import OneByOne, _standing_for
from hotloop.optimize.catalogue.memory.optimizer_memory.row import OptimizerMemory
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, optimizer, root


def test_expandable_segments_are_cuda_s() -> None:
    with pytest.raises(DoesNotApply, match="cpu_allocator"):
        AllocatorSettings().candidates(observation())
    with pytest.raises(DoesNotApply, match="own settings"):
        AllocatorSettings().candidates(
            observation(device="cuda", environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:native"})
        )
    (candidate,) = AllocatorSettings().candidates(observation(device="cuda"))
    assert candidate.saves_memory
    assert AllocatorSettings().environment({}) == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def test_the_allocator_s_own_snapshot_is_the_evidence() -> None:
    stats = {"reserved_bytes.all.peak": 3 << 20, "allocated_bytes.all.peak": 2 << 20}
    assert told([{"is_expandable": True}, {}], stats) == (
        True,
        "1 of 2 segments are expandable; at most 3 MiB reserved for 2 MiB in use, 0 retries",
    )
    assert not told([{"is_expandable": False}], stats)[0]


def test_an_optimizer_steps_one_by_one() -> None:
    activation = OneByOne()
    activation.on_torch()
    keywords = activation.on_optimizer(torch.optim.AdamW, {"lr": 0.1, "foreach": True})
    assert keywords == {"lr": 0.1, "foreach": False}
    assert activation.on_optimizer(torch.optim.AdamW, {"fused": True}) == {"fused": True}
    model = nn.Linear(2, 2)
    made = torch.optim.AdamW(model.parameters(), **keywords)
    model(torch.ones(1, 2)).sum().backward()
    made.step()
    assert activation.effect() == (True, "AdamW steps one parameter at a time")


def test_the_optimizer_of_8_bits_takes_torch_s_keywords() -> None:
    class Eight(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any, lr: float = 1e-3) -> None:
            super().__init__(params, {"lr": lr})

    made: list[Any] = []
    cls = _standing_for(Eight, "AdamW", made)
    optimizer = cls([torch.zeros(1)], lr=0.5, fused=True)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert made == [optimizer]


def test_kinds_that_a_program_can_have() -> None:
    def kinds(**facts: Any) -> dict[str, Numerics]:
        found = OptimizerMemory().candidates(observation(**facts))
        assert all(one.saves_memory and one.saved_bytes for one in found)
        return {one.params["kind"]: one.numerics for one in found}

    assert kinds(optimizers=(optimizer(foreach=True),)) == {"one_by_one": Numerics.EXACT}
    assert kinds(optimizers=(optimizer(),), libraries=("torchao",)) == {"8bit": Numerics.SEMANTIC}
    assert set(kinds(optimizers=(optimizer(),), libraries=("torchao",), device="cuda")) == {
        "one_by_one",
        "8bit",
    }
    with pytest.raises(DoesNotApply, match="torchao"):
        kinds(optimizers=(optimizer(),))


class Words(nn.Module):  # type: ignore[misc]
    def __init__(self, bias: bool = False) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(60, 8), nn.Linear(8, 60, bias=bias)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_loss_by_chunks_is_the_loss(bias: bool, reduction: str, dtype: torch.dtype) -> None:
    plain = Words(bias).to(dtype)
    model = copy.deepcopy(plain)
    ids = torch.randint(60, (3, 5))
    target = ids.clone()
    target[0, :2] = -100
    losses = []
    activation = ChunkedCrossEntropy().activation({})
    for each in (plain, model):
        if each is model:
            activation.on_torch()
            activate(activation, model)
        logits = each(ids)
        losses.append(functional.cross_entropy(logits.view(-1, 60), target.view(-1), reduction=reduction))
        losses[-1].backward()
    rtol = 0.05 if dtype is torch.bfloat16 else 1e-5
    assert losses[0].dtype == losses[1].dtype
    torch.testing.assert_close(*losses, rtol=rtol, atol=1e-6)
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=rtol, atol=1e-2 if rtol > 0.01 else 1e-6)
    assert activation.effect() == (True, "1 losses on 15 x 60 logits by chunks")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda logits, ids: functional.cross_entropy((logits * 2).view(-1, 60), ids.view(-1)),
            "not given what",
        ),
        (
            lambda logits, ids: functional.cross_entropy(
                logits[:, :-1].reshape(-1, 60), ids[:, 1:].reshape(-1)
            ),
            "not given",
        ),
        (
            lambda logits, ids: functional.cross_entropy(logits.mul_(2).view(-1, 60), ids.view(-1)),
            "not given what",
        ),
        (
            lambda logits, ids: functional.cross_entropy(
                logits.view(-1, 60), ids.view(-1), label_smoothing=0.1
            ),
            "weighs classes",
        ),
        (
            lambda logits, ids: logits.retain_grad() or functional.cross_entropy(logits.transpose(1, 2), ids),
            "not given",
        ),
    ],
)
def test_other_losses_are_torch_s_own(change: Any, reason: str) -> None:
    model, ids = Words(), torch.randint(60, (3, 5))
    expected = change(model(ids), ids)
    activation = ChunkedCrossEntropy().activation({})
    activation.on_torch()
    activate(activation, model)
    assert torch.equal(change(model(ids), ids), expected)
    on, evidence = activation.effect()
    assert not on
    assert reason in evidence


def test_it_wants_a_cross_entropy_in_the_source(tmp_path: Path) -> None:
    with pytest.raises(DoesNotApply, match="no cross_entropy"):
        ChunkedCrossEntropy().candidates(observation())
    code = tmp_path / "net.py"
    code.write_text("loss = functional.cross_entropy(logits, y)\n")
    (candidate,) = ChunkedCrossEntropy().candidates(observation(roots=(root(code_files=(str(code),)),)))
    assert candidate.prior < 1
