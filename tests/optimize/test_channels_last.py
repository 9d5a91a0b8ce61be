"""channels_last and channels_last_3d: another layout, the same model."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.optimization import Numerics
from hotloop.optimize.catalogue.compute.channels_last.row import ChannelsLast, ChannelsLast3d
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, root


def convolutional(dimensions: int = 2) -> nn.Module:
    layer = nn.Conv2d if dimensions == 2 else nn.Conv3d
    return nn.Sequential(layer(3, 4, 3, padding=1), nn.ReLU(), layer(4, 4, 3, padding=1))


@pytest.mark.parametrize(("optimization", "dimensions"), [(ChannelsLast, 2), (ChannelsLast3d, 3)])
def test_weights_and_inputs_change_layout_and_nothing_else(optimization: Any, dimensions: int) -> None:
    model = convolutional(dimensions)
    x = torch.randn(2, 3, *[8] * dimensions)
    plain = model(x)
    parameters = list(model.parameters())
    activation = optimization().activation({})
    activate(activation, model)
    output = model(x)
    form = torch.channels_last if dimensions == 2 else torch.channels_last_3d
    assert model[0].weight.is_contiguous(memory_format=form)
    assert not model[0].weight.is_contiguous()
    assert all(new is old for new, old in zip(model.parameters(), parameters, strict=True))
    assert output.is_contiguous()
    torch.testing.assert_close(output, plain)
    assert activation.effect() == (True, "2 convolution weights and the inputs are channels-last")


def test_convolutions_inside_see_the_layout() -> None:
    class Watching(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.seen: list[bool] = []

        def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            y = self.conv(batch["image"])
            self.seen.append(y.is_contiguous(memory_format=torch.channels_last))
            return y

    model = Watching()
    activate(ChannelsLast().activation({}), model)
    model({"image": torch.randn(2, 3, 8, 8)})
    assert model.seen == [True]


@pytest.mark.parametrize(
    ("layers", "source", "numerics"),
    [
        ({"Conv2d": 1}, "F.relu(x)", Numerics.EXACT),
        ({"Conv2d": 1, "Dropout2d": 1}, "F.relu(x)", Numerics.TOLERANCE),
        ({"Conv2d": 1}, "F.dropout(x, training=self.training)", Numerics.TOLERANCE),
    ],
)
def test_a_model_that_drops_is_held_to_its_curve(
    layers: dict[str, int], source: str, numerics: Numerics, tmp_path: Path
) -> None:
    """What is dropped is drawn in the order of memory."""
    code = tmp_path / "net.py"
    code.write_text(f"def forward(self, x):\n    return {source}\n")
    (candidate,) = ChannelsLast().candidates(
        observation(roots=(root(layer_counts=layers, code_files=(str(code),)),))
    )
    assert candidate.numerics is numerics


def test_a_mask_on_a_channels_last_map_is_another_one() -> None:
    x = torch.ones(1, 4, 8, 8)
    torch.manual_seed(0)
    plain = nn.functional.dropout(x)
    torch.manual_seed(0)
    assert not torch.equal(plain, nn.functional.dropout(x.contiguous(memory_format=torch.channels_last)))


def test_shared_parameters_stay_shared() -> None:
    model = convolutional().share_memory()
    activation = ChannelsLast().activation({})
    activate(activation, model)
    model(torch.randn(2, 3, 8, 8))
    assert all(parameter.is_shared() for parameter in model.parameters())
    assert model[0].weight.is_contiguous()
    assert activation.effect() == (False, "the parameters are shared between processes and were left alone")


@pytest.mark.parametrize("keywords", [{"fused": True}, {"foreach": True}, {"foreach": False}])
def test_optimizer_state_from_a_checkpoint_follows(keywords: dict[str, bool]) -> None:
    """A fused step walks parameter, gradient and state in memory order: their layouts must agree."""

    def trained(activation: Any, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        model = convolutional()
        first = torch.optim.AdamW(model.parameters(), 0.1, **keywords)
        model(x).square().sum().backward()
        first.step()
        first.zero_grad()
        resumed = torch.optim.AdamW(model.parameters(), 0.1, **keywords)
        resumed.load_state_dict(first.state_dict())
        if activation is not None:
            activation.on_torch()
            activate(activation, model)
        model(x).square().sum().backward()
        resumed.step()
        weight: torch.Tensor = model[0].weight.detach().contiguous()
        return weight

    x = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(
        trained(ChannelsLast().activation({}), x), trained(None, x), rtol=1e-4, atol=1e-5
    )


def test_gradients_in_ddp_s_buckets_are_left_alone() -> None:
    model = convolutional()
    model.gradient_as_bucket_view = True
    activation = ChannelsLast().activation({})
    activate(activation, model)
    model(torch.randn(2, 3, 8, 8))
    assert model[0].weight.is_contiguous()
    assert activation.effect() == (False, "gradients are views into DDP's buckets, whose layout is fixed")


def test_no_convolution_is_no_effect() -> None:
    model = nn.Linear(4, 4)
    activation = ChannelsLast().activation({})
    activate(activation, model)
    model(torch.randn(2, 4))
    assert not activation.effect()[0]


def test_the_module_is_saved_and_copied_as_before() -> None:
    model = convolutional()
    keys = list(model.state_dict())
    activate(ChannelsLast().activation({}), model)
    model(torch.randn(2, 3, 8, 8)).sum().backward()
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert list(torch.load(file, weights_only=False).state_dict()) == keys
    assert list(copy.deepcopy(model).state_dict()) == keys
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    fresh = convolutional()
    fresh.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(fresh[0].weight, model[0].weight)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"roots": (root(layer_counts={"Linear": 3}),)}, "has no Conv2d"),
        ({"shared_memory": True}, "shared between processes"),
        ({"distributed": "fsdp"}, "FSDP"),
    ],
)
def test_it_does_not_apply(program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        ChannelsLast().candidates(observation(**program))


def test_volumes_want_the_other_one() -> None:
    with pytest.raises(DoesNotApply, match="no Conv3d"):
        ChannelsLast3d().candidates(observation())
    (candidate,) = ChannelsLast3d().candidates(observation(roots=(root(layer_counts={"Conv3d": 2}),)))
    assert candidate.name == "channels_last_3d"
