"""lossy_in_half: autocast, with the modules left out that lose most in half precision."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.catalogue.precision.lossy_in_half.activation import LossyModules
from hotloop.optimize.catalogue.precision.lossy_in_half.row import LossyInHalf
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.reduced_precision.half_runs import both_values

from .harness import activate, observation, root

MACHINE = {"num_cores": 2, "isa": ["avx512_bf16"]}


def cancelling(width: int) -> nn.Linear:
    """A layer whose rows are large and sum up to little: its terms cancel, and their rounding does not."""
    layer = nn.Linear(width, 8)
    with torch.no_grad():
        weight = 100 * torch.randn(8, width // 2)
        layer.weight.copy_(torch.cat((weight, -weight + 0.01 * torch.randn_like(weight)), dim=1))
    return layer


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.drop = nn.Linear(16, 32), nn.Linear(32, 32), nn.Dropout(0.1)
        self.batch, self.head = nn.BatchNorm1d(32), head

    def forward(self, x: torch.Tensor) -> Any:
        x = self.batch(self.drop(self.second(self.first(x).tanh())))
        half = x[:, :16]
        return self.head(torch.cat((half, half), dim=1))


def trained(model: nn.Module) -> Any:
    output = model(torch.randn(64, 16))
    output.square().mean().backward()
    return output


def test_the_layer_whose_terms_cancel_runs_in_full_precision() -> None:
    torch.manual_seed(0)
    model, activation = Net(cancelling(32)), LossyInHalf().activation({})
    activate(activation, model)
    dtypes: dict[str, torch.dtype] = {}
    for name, part in model.named_children():
        part.register_forward_hook(lambda _, __, out, name=name: dtypes.update({name: out.dtype}))
    trained(model)
    assert dtypes["head"] is torch.bfloat16, "from the next forward on"
    trained(model)
    assert dtypes["head"] is torch.float32
    assert dtypes["first"] is torch.bfloat16
    on, evidence = activation.effect()
    assert on
    assert "kept out: 1 Linear of 5 modules, off by" in evidence


def test_it_is_nearer_to_full_precision_than_autocast_alone() -> None:
    torch.manual_seed(0)
    plain = Net(cancelling(32)).eval()
    batch, outputs = torch.randn(64, 16), {}
    for row in (AutocastBf16(), LossyInHalf()):
        model = Net(cancelling(32)).eval()
        model.load_state_dict(plain.state_dict())
        activation = row.activation({})
        assert activation is not None
        activate(activation, model)
        model(batch).sum().backward()
        outputs[row.name] = model(batch)
    apart = {name: float((output - plain(batch)).detach().norm()) for name, output in outputs.items()}
    assert apart["lossy_in_half"] < 0.5 * apart["autocast_bf16"]


def test_where_nothing_loses_much_there_is_no_effect() -> None:
    torch.manual_seed(0)
    model, activation = Net(nn.Linear(32, 8)), LossyInHalf().activation({})
    activate(activation, model)
    trained(model)
    on, evidence = activation.effect()
    assert not on
    assert evidence == "none of 5 modules was off by 1.6% in bfloat16"


def test_what_is_no_number_is_lost() -> None:
    class Overflows(nn.Linear):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> Any:
            output = super().forward(x)
            return output * float("inf") if torch.is_autocast_enabled("cpu") else output

    layer = Overflows(4, 4)
    lost = both_values(layer, (torch.randn(3, 4),), {}, torch.bfloat16)
    assert not lost <= 1.0


def test_everything_stays_as_it_was() -> None:
    """Running averages, gradients and the program's random numbers."""
    torch.manual_seed(0)
    plain, model = Net(nn.Linear(32, 8)), Net(nn.Linear(32, 8))
    model.load_state_dict(plain.state_dict())
    activate(LossyInHalf().activation({}), model)
    batch = torch.randn(64, 16)
    torch.manual_seed(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain(batch)
    after = torch.rand(3)
    torch.manual_seed(1)
    model(batch)
    assert torch.equal(torch.rand(3), after)
    assert all(one.grad is None for one in model.parameters())
    torch.testing.assert_close(model.batch.running_mean, plain.batch.running_mean)


class AllKeptOut(LossyModules):
    def worse(self, seen: Mapping[Any, tuple[Any, Any]], dtype: Any) -> list[Any]:
        return list(seen)


def test_a_program_can_save_and_copy_its_model() -> None:
    """A recurrent layer gives all its attributes to pickle (not an LSTM: oneDNN has none in bf16 without AVX-512)."""

    class Recurrent(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(16, 16), nn.Linear(16, 2)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(self.rnn(x)[0])

    model, activation = Recurrent(), AllKeptOut("bfloat16")
    activate(activation, model)
    for _ in range(2):
        trained(model)
    assert model.rnn in activation.kept_out
    file = io.BytesIO()
    torch.save(model.rnn, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert again(torch.ones(2, 16))[0].shape == copy.deepcopy(model.rnn)(torch.ones(2, 16))[0].shape


@pytest.mark.parametrize(
    ("facts", "machine", "reason"),
    [
        ({"roots": (root(layer_counts={"Linear": 2}),)}, MACHINE, "too few layers"),
        ({}, {"isa": ["avx2"]}, "no bfloat16 units"),
        ({"autocast_dtype": "bfloat16"}, MACHINE, "already"),
    ],
)
def test_where_it_does_not_apply(facts: dict[str, Any], machine: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        LossyInHalf().candidates(observation(machine=machine, **facts))


def test_it_comes_last_of_its_kind() -> None:
    seen = observation(machine=MACHINE)
    (one,), (plain,) = LossyInHalf().candidates(seen), AutocastBf16().candidates(seen)
    assert 1 < one.prior < plain.prior
