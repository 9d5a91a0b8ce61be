"""activation_checkpointing: the same training, with fewer tensors kept."""

from __future__ import annotations

import copy
import io
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.memory.activation_checkpointing.activation import CheckpointedBlocks, cheapest
from hotloop.optimize.catalogue.memory.activation_checkpointing.row import ActivationCheckpointing
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.recomputation.copies import Copies
from hotloop.optimize.recomputation.model_blocks import blocks
from hotloop.optimize.recomputation.recomputed_call import RecomputedCall

from . import recomputed_models as models
from .harness import activate, observation, root


def trained(model: nn.Module, x: torch.Tensor, steps: int = 4) -> list[float]:
    """Train, and return the losses."""
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(steps):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def same(model: nn.Module, x: torch.Tensor, activation: Any) -> bool:
    """Whether a model learns bit for bit the same, parameters and buffers."""
    plain = copy.deepcopy(model)
    activate(activation, model)
    losses = trained(model, x)
    states = zip(plain.state_dict().values(), model.state_dict().values(), strict=True)
    return trained(plain, x) == losses and all(torch.equal(one, other) for one, other in states)


IMAGES, ROWS = torch.randn(4, 3, 8, 8), torch.randn(4, 5, 8)


@pytest.mark.parametrize("wanted", ["all", 0.5])
def test_batch_norm_updates_its_statistics_once(wanted: Any) -> None:
    activation = ActivationCheckpointing().activation({"blocks": wanted})
    assert same(models.UNet(), IMAGES, activation)
    on, evidence = activation.effect()
    assert on, evidence
    assert "recomputed" in evidence


@pytest.mark.parametrize("wanted", ["all", 0.5, ["layers"], ["layers.1"], ["module.layers"]])
def test_dropout_is_the_same_again(wanted: Any) -> None:
    activation = ActivationCheckpointing().activation({"blocks": wanted})
    assert same(models.Model(), ROWS, activation)
    assert activation.effect()[0]


def test_blocks_for_half_of_the_bytes_are_kept_after_they_were_measured() -> None:
    model = models.Model(num=4)
    activation = CheckpointedBlocks(0.5)
    activate(activation, model)
    trained(model, ROWS)
    assert "2 of 4 blocks" in activation.effect()[1]


@pytest.mark.parametrize(
    ("share", "chosen"),
    [(0.1, ["cheap"]), (0.25, ["cheap"]), (0.5, ["cheap", "large"]), (0.95, ["cheap", "large", "dear"])],
)
def test_blocks_are_chosen_by_bytes_for_their_time(share: float, chosen: list[str]) -> None:
    """Of 100 bytes 30 cost 1 ms, 50 cost 5 ms, and 20 cost 20 ms."""
    measured = {"dear": (20, 0.020), "large": (50, 0.005), "cheap": (30, 0.001)}
    calls = {}
    for name, (saved_bytes, forward_s) in measured.items():
        calls[name] = RecomputedCall(nn.Linear(1, 1), lambda x: x)
        calls[name].saved_bytes, calls[name].forward_s = saved_bytes, forward_s
    found = cheapest(list(calls.values()), share)
    assert [next(name for name, call in calls.items() if call is each) for each in found] == chosen


def test_fewer_tensors_are_saved() -> None:
    def saved(model: nn.Module) -> int:
        kept: list[torch.Tensor] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor
        ):
            model(ROWS)
        return sum(each.nbytes for each in kept)

    model = models.Model()
    before = saved(model)
    activate(CheckpointedBlocks("all"), model)
    assert saved(model) < before / 2


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (models.Counts, "assigns to self.num"),
        (models.Collects, r"calls self.seen.append\(\)"),
        (models.CollectsByAnotherName, r"calls seen.append\(\)"),
        (models.SkipsByPython, "draws random numbers that are not torch's"),
        (models.SkipsByOwnGenerator, "draws random numbers that are not torch's"),
        (models.DrawsByOwnGenerator, "a generator of its own"),
        (models.ByHelper, "draws random numbers that are not torch's"),
        (models.Prints, r"calls print\(\)"),
    ],
)
def test_blocks_that_do_something_twice_are_left_alone(block: type[nn.Module], reason: str) -> None:
    model = models.Model(block)
    activation = CheckpointedBlocks("all")
    activate(activation, model)
    trained(model, ROWS)
    on, evidence = activation.effect()
    assert not on
    assert reason.replace("\\", "") in evidence


def test_hooks_are_not_called_twice() -> None:
    model = models.Model()
    calls: list[int] = []
    model.layers[1].body[0].register_forward_hook(lambda *_: calls.append(1))
    activation = CheckpointedBlocks("all")
    activate(activation, model)
    trained(model, ROWS, steps=3)
    assert len(calls) == 3
    assert "has hooks" in activation.effect()[1]


@pytest.mark.parametrize("block", [models.ChangesItsInput, models.ChangesABuffer])
def test_what_is_changed_in_place_is_computed_from_what_it_was(block: type[nn.Module]) -> None:
    """The first step is right already, and the block is left alone after it."""
    activation = CheckpointedBlocks("all")
    assert same(models.Model(block), ROWS, activation)
    assert "its inputs or buffers are changed in place" in activation.effect()[1]


@pytest.mark.parametrize("wanted", ["all", ["layers"], 0.5])
def test_what_the_program_changes_after_a_block_is_computed_from_what_it_was(wanted: Any) -> None:
    activation = CheckpointedBlocks(wanted)
    assert same(models.AddsInPlace(models.BeginsWithRelu), ROWS, activation)
    assert "its inputs or buffers are changed in place" in activation.effect()[1]


def test_statistics_that_a_kernel_updates_are_updated_once() -> None:
    activation = CheckpointedBlocks("all")
    assert same(models.Model(models.OwnBatchNorm), ROWS, activation)
    assert activation.effect()[0]


@pytest.mark.parametrize("wanted", ["all", ["layers"], 0.5])
def test_blocks_that_are_given_a_cache_are_left_alone(wanted: Any) -> None:
    activation = CheckpointedBlocks(wanted)
    assert same(models.WithCache(), ROWS, activation)
    assert activation.effect()[0] is False
    assert "it is given a Cache, which a second run might change" in activation.effect()[1]


@pytest.mark.parametrize("use_cache", [True, False])
def test_decoders_of_transformers_train_with_and_without_their_cache(use_cache: bool) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=3, n_head=2, use_cache=use_cache
    )
    plain = transformers.GPT2LMHeadModel(config)
    model = copy.deepcopy(plain)
    activation = CheckpointedBlocks("all")
    activate(activation, model)
    ids = torch.randint(64, (2, 8))
    for each in (plain, model):
        torch.manual_seed(0)
        each.train()
        each(ids, labels=ids).loss.backward()
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    on, evidence = activation.effect()
    assert on is not use_cache
    assert ("it is given a DynamicCache" in evidence) is use_cache


def test_a_list_that_a_block_appends_to_grows_once() -> None:
    activation = CheckpointedBlocks("all")
    assert same(models.WithList(), ROWS, activation)
    assert activation.effect()[0]


def test_random_state_is_kept_of_the_devices_of_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may move its inputs, or be given them in something that torch does not look into."""
    shown: list[Any] = []

    def checkpoint(function: Any, *given: Any, use_reentrant: bool) -> Any:
        shown.append(torch.utils._pytree.tree_leaves(given))
        return function(*given)

    device = SimpleNamespace(device=torch.device("cuda", 1), is_cuda=False)
    block = nn.Linear(8, 8)
    monkeypatch.setattr(torch.utils.checkpoint, "checkpoint", checkpoint)
    monkeypatch.setattr(block, "parameters", lambda: iter([device, device]))
    call = RecomputedCall(block, block._call_impl)
    call(ROWS)
    assert shown == [[device]]


def test_copies_of_what_many_blocks_are_given_are_shared_and_expanded_ones_stay_small() -> None:
    copies = Copies()
    mask = torch.ones(1, 4).expand(1000, 4)
    kept = copies.of(mask)
    assert kept is copies.of(mask)
    assert torch.equal(kept, mask)
    assert kept.untyped_storage().nbytes() == 16
    changes = torch.zeros(4)
    before = copies.of(changes)
    changes += 1
    assert not before.any()
    assert copies.of(changes).all()


def test_autocast_and_gradient_accumulation_of_the_program() -> None:
    plain, model = models.Model(), models.Model()
    model.load_state_dict(plain.state_dict())
    activate(CheckpointedBlocks("all"), model)
    for each in (plain, model):
        torch.manual_seed(1)
        for part in ROWS.chunk(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = each(part).square().mean()
            loss.backward()
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=0)


def test_evaluation_copies_and_files_are_as_before() -> None:
    model = models.Model()
    keys = list(model.state_dict())
    activate(CheckpointedBlocks("all"), model)
    trained(model, ROWS)
    with torch.no_grad():
        model(ROWS)
    copied = copy.deepcopy(model)
    assert copied.layers[0].__dict__.get("_compiled_call_impl") is None
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert list(torch.load(file, weights_only=False).state_dict()) == keys


def test_blocks_are_the_repeated_parts() -> None:
    assert list(blocks(models.Model())) == ["layers.0", "layers.1", "layers.2"]
    assert list(blocks(models.UNet())) == ["inc", "down", "outc"]
    stages = nn.ModuleDict({"stem": nn.Linear(8, 8), "one": nn.Sequential(models.Model(), models.Model())})
    assert list(blocks(stages))[:2] == ["one.0.layers.0", "one.0.layers.1"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"roots": (root(compiled=True),)}, "activation_memory_budget"),
        ({"roots": (root(training=False),)}, "trains nothing"),
        ({"double_backward": True}, "differentiates twice"),
        ({"distributed": "fsdp"}, "FSDP"),
    ],
)
def test_it_does_not_apply(program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        ActivationCheckpointing().candidates(observation(**program))


def test_candidates_say_that_they_save_memory_for_time() -> None:
    seen = observation(roots=(root(blocks={"layers": 3}),))
    named, *parts = ActivationCheckpointing().candidates(seen)
    assert named.params == {"blocks": ["layers"]}
    assert named.saves_memory
    assert named.prior == pytest.approx(1 / 1.3)
    assert [one.params["blocks"] for one in parts] == [0.75, 0.5, 0.25]
    assert named.prior < parts[0].prior < parts[1].prior < parts[2].prior < 1
    norms = observation(roots=(root(blocks={"layers": 3}, layer_counts={"BatchNorm2d": 1}),))
    assert ActivationCheckpointing().candidates(norms)[0].params == {"blocks": "all"}


@pytest.mark.parametrize("wanted", ["some", [], ["a b"], 3, 1.5, 0.0])
def test_parameters_are_checked(wanted: Any) -> None:
    with pytest.raises(ValueError, match="allowed: all, a share"):
        ActivationCheckpointing().validate({"blocks": wanted})
