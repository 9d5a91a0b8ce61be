"""Knobs: the same change as the optimization, and afterwards everything as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hotloop.model.optimization import Candidate
from hotloop.optimize.catalogue.compute.channels_last.knob import MemoryFormatKnob
from hotloop.optimize.catalogue.compute.debug_apis_off.knob import AnomalyKnob
from hotloop.optimize.catalogue.compute.fused_optimizer.knob import OptimizerKnob
from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.knobs.threads import ThreadKnob
from hotloop.optimize.loaders.worker_knob import WorkerKnob
from hotloop.optimize.registry import all_optimizations
from hotloop.probe.activation.knob import Knob
from hotloop.whatif.cached_batch import CachedBatch

from .harness import activate


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.randn(2, 3, 8, 8)).square().mean().backward()
    optimizer.step()


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))


def test_every_knob_has_what_the_run_needs() -> None:
    params = {
        "loader_workers": {"num_workers": 1},
        "loader_prefetch": {"prefetch_factor": 4},
        "thread_count": {"num_threads": 1},
        "cpu_allocator": {"allocator": "glibc"},
        "cpu_affinity": {"cores": "physical"},
        "faster_decode": {"decoder": "simplejpeg"},
    }
    knobs = {one.name: one.knob(params.get(one.name, {})) for one in all_optimizations()}
    switched = {name for name, knob in knobs.items() if knob is not None}
    assert switched >= {
        "autocast_bf16",
        "cached_preprocessing",
        "channels_last",
        "channels_last_3d",
        "compile",
        "compiled_chains",
        "conv_bias_off",
        "cpu_affinity",
        "cpu_allocator",
        "created_on_device",
        "cuda_graphs",
        "dataset_in_memory",
        "debug_apis_off",
        "deferred_sync",
        "device_prefetch",
        "faster_decode",
        "flash_attention",
        "foreach_clipping",
        "frozen_inference",
        "fused_layers",
        "fused_optimizer",
        "fused_pointwise",
        "fused_recurrence",
        "kernel_autotune",
        "loader_prefetch",
        "loader_workers",
        "tf32_matmul",
        "thread_count",
        "vectorized_fetch",
        "vectorized_loop",
        "zero_grad_none",
    }
    assert all(isinstance(knob, Knob) for knob in knobs.values() if knob is not None)


def test_the_layout_goes_to_and_fro_with_weights_and_optimizer_state() -> None:
    model, knob = convolutions(), MemoryFormatKnob(2)
    optimizer = torch.optim.Adam(model.parameters())
    knob.on_torch()
    activate(knob, model)
    step(model, optimizer)
    weight = next(model.parameters())
    values = weight.detach().clone()
    knob.switch(True)
    assert weight.is_contiguous(memory_format=torch.channels_last)
    step(model, optimizer)
    assert optimizer.state[weight]["exp_avg"].is_contiguous(memory_format=torch.channels_last)
    assert knob.effect()[0]
    knob.switch(False)
    assert weight.is_contiguous()
    assert optimizer.state[weight]["exp_avg"].is_contiguous()
    step(model, optimizer)
    assert weight.shape == values.shape
    assert not torch.equal(weight, values)


@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad])
def test_the_optimizer_steps_alike_whichever_way(cls: type[torch.optim.Optimizer]) -> None:
    ends = []
    for ways in ((), ("fused",), ("foreach",)):
        torch.manual_seed(0)
        model = convolutions()
        optimizer = cls(model.parameters(), lr=0.01)  # type: ignore[call-arg]
        knob = OptimizerKnob(ways[0] if ways else "fused")
        knob.on_torch()
        for number in range(6):
            if ways and number == 2:
                knob.switch(True)
            if ways and number == 4:
                assert knob.effect()[0]
                knob.switch(False)
            step(model, optimizer)
        assert not optimizer.param_groups[0].get("fused")
        ends.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    for other in ends[1:]:
        torch.testing.assert_close(ends[0], other)


def test_anomaly_detection_is_held_off_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("set_anomaly_enabled", "is_anomaly_enabled", "is_anomaly_check_nan_enabled"):
        monkeypatch.setattr(torch, name, getattr(torch, name))
    knob = AnomalyKnob()
    knob.on_torch()
    try:
        torch.autograd.set_detect_anomaly(True)
        knob.switch(True)
        assert not torch._C.is_anomaly_enabled()
        with torch.autograd.detect_anomaly(check_nan=False):  # as a compiler does while it traces
            assert not torch._C.is_anomaly_enabled()
        assert torch.is_anomaly_enabled(), "the program's wish"
        assert knob.effect()[0]
        knob.switch(False)
        assert torch._C.is_anomaly_enabled()
        assert torch._C.is_anomaly_check_nan_enabled()
    finally:
        torch._C.set_anomaly_enabled(False)


def test_threads_change_while_on() -> None:
    before = torch.get_num_threads()
    knob = ThreadKnob(before + 1)
    knob.switch(True)
    assert torch.get_num_threads() == before + 1
    knob.switch(False)
    assert torch.get_num_threads() == before
    assert knob.effect()[0]


def test_autocast_acts_only_while_on() -> None:
    knob = AutocastBf16().knob({})
    inside: list[bool] = []
    model = convolutions()
    model[0].register_forward_hook(lambda *_: inside.append(torch.is_autocast_enabled("cpu")))
    activate(knob, model)
    images = torch.randn(2, 3, 8, 8)
    for on in (False, True, False):
        knob.switch(on)
        assert model(images).dtype is torch.float32
    assert inside == [False, True, False]


def test_a_cached_batch_is_handed_out_and_the_epoch_keeps_its_length() -> None:
    knob = CachedBatch()
    knob.on_torch()
    loader = DataLoader(TensorDataset(torch.arange(40)), batch_size=4)
    seen = []
    for number, (batch,) in enumerate(loader):
        seen.append(int(batch[0]))
        knob.watch(number + 1)
        if number in (3, 6):
            knob.switch(number == 3)
    assert seen == [0, 4, 8, 12, 12, 12, 12, 16, 20, 24]
    assert knob.effect()[0]
    assert sum(1 for _ in loader) == 10


def test_a_batch_that_the_program_changes_cannot_be_used_twice() -> None:
    knob = CachedBatch()
    knob.on_torch()
    for number, (batch,) in enumerate(DataLoader(TensorDataset(torch.ones(40)), batch_size=4)):
        batch.mul_(2)
        knob.watch(number + 1)
        if number == 2:
            knob.switch(True)
    on, evidence = knob.effect()
    assert not on
    assert "in place" in evidence


def _fed_with(sizes: list[int]) -> tuple[CachedBatch, list[int]]:
    """Feed steps with batches of such sizes, the last four of them from the cache; return what was handed out."""
    knob = CachedBatch()
    knob.on_torch()
    handed = []
    for number, batch in enumerate(DataLoader(sizes, batch_size=None, collate_fn=torch.zeros)):  # type: ignore[arg-type]
        handed.append(len(batch))
        if number <= len(sizes) - 5:
            knob.watch(number + 1)
        if number == len(sizes) - 5:
            knob.switch(True)
    return knob, handed[-4:]


def test_the_cached_batch_is_the_one_most_like_the_others() -> None:
    """The last one before measuring may be twice the mean, or the short end of an epoch."""
    knob, handed = _fed_with([10, 30, 20, 20, 10, 30, 9, 9, 9, 9])
    assert handed == [20] * 4
    assert knob.effect()[0]


def test_where_no_batch_is_like_the_others_there_is_no_ceiling() -> None:
    knob, _ = _fed_with([10, 30, 10, 30, 9, 9, 9, 9])
    on, evidence = knob.effect()
    assert not on
    assert "differ in size" in evidence


def test_a_loader_that_few_steps_are_fed_from_is_left_alone() -> None:
    """An evaluation between steps takes its own data."""
    knob = CachedBatch()
    knob.on_torch()
    training = DataLoader(TensorDataset(torch.arange(40)), batch_size=4)
    evaluation = DataLoader(TensorDataset(torch.arange(100, 108)), batch_size=4)
    for number, _ in enumerate(training):
        if number == 4:
            assert [int(batch[0]) for (batch,) in evaluation] == [100, 104]
        knob.watch(number + 1)
    knob.switch(True)
    assert [int(batch[0]) for (batch,) in evaluation] == [100, 104]


def test_batches_come_from_other_workers_while_on() -> None:
    knob = WorkerKnob(1)
    knob.on_torch()
    loader = DataLoader(TensorDataset(torch.arange(400)), batch_size=4)
    seen = []
    for number, (batch,) in enumerate(loader):
        seen.append(len(batch))
        knob.watch(number + 1)
        if number in (5, 12):
            knob.switch(number == 5)
    assert seen == [4] * 100
    assert knob.effect() == (True, "batches came from [1] worker processes")


def test_a_candidate_without_a_prediction_says_so() -> None:
    assert Candidate(name="compile").predicted is None
