"""compile: the model's call is compiled, the model stays what it is."""

from __future__ import annotations

import copy
import functools
import inspect
import io
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.compute.compile.row import Compile
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.record.blocks import repeated_blocks

from .harness import activate, observation, root


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.relu(self.layer(x)) * scale


@pytest.mark.slow
def test_the_call_is_compiled_and_computes_the_same() -> None:
    model = Net()
    x = torch.randn(2, 8)
    plain = model(x)
    activation = Compile().activation({"mode": "default"})
    activate(activation, model)
    keys, children, signature = (
        list(model.state_dict()),
        list(model.children()),
        inspect.signature(model.forward),
    )
    output = model(x)
    torch.testing.assert_close(output, plain)
    output.sum().backward()
    assert model.layer.weight.grad is not None
    on, evidence = activation.effect()
    assert on, evidence
    assert "1 calls" in evidence
    assert list(model.state_dict()) == keys
    assert list(model.children()) == children
    assert inspect.signature(model.forward) == signature
    assert type(model) is Net
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert list(torch.load(file, weights_only=False).state_dict()) == keys
    assert list(copy.deepcopy(model).state_dict()) == keys


def test_a_model_made_of_torch_s_own_containers_is_compiled_too() -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    activation = Compile().activation({})
    activate(activation, model)
    x = torch.randn(2, 8)
    torch.testing.assert_close(model(x), torch.relu(model[0](x)))
    on, evidence = activation.effect()
    assert on, evidence


def test_the_program_s_compilations_are_not_mixed_up_with_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe wraps torch.compile to learn which modules the program compiles; ours must not call it."""
    original = torch.compile

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("taken for a compilation of the program's")

    monkeypatch.setattr(torch, "compile", watched)
    assert callable(Compile().activation({}).wrap_forward(Net(), len))


def test_a_model_that_cannot_be_compiled_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(call: Any, **kwargs: Any) -> Any:
        def run(*args: Any, **keywords: Any) -> Any:
            raise torch._dynamo.exc.Unsupported("no such thing")

        return run

    import torch._dynamo.exc

    monkeypatch.setattr(torch, "compile", broken)
    model = Net()
    x = torch.randn(2, 8)
    plain = model(x)
    activation = Compile().activation({})
    activate(activation, model)
    torch.testing.assert_close(model(x), plain)
    on, evidence = activation.effect()
    assert not on
    assert "compilation failed: Unsupported: no such thing" in evidence


def test_the_program_s_own_errors_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda call, **kwargs: call)
    model = Net()
    activate(Compile().activation({}), model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.randn(2, 7))


def test_nothing_compiled_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda call, **kwargs: call)
    model = Net()
    activation = Compile().activation({})
    assert activation.effect() == (False, "no training forward was compiled")
    activate(activation, model)
    model(torch.randn(2, 8))
    on, evidence = activation.effect()
    assert not on
    assert evidence.startswith("0 compiled graphs, 1 calls")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"roots": ()}, "nothing to compile"),
        ({"roots": (root(compiled=True),)}, "already compiles"),
        ({"double_backward": True}, "differentiates twice"),
        ({"distributed": "fsdp"}, "FSDP"),
    ],
)
def test_it_does_not_apply(program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        Compile().candidates(observation(**program))


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DoesNotApply, match=r"no C\+\+ compiler"):
        Compile().candidates(observation())
    assert Compile().candidates(observation(device="cuda"))


def test_a_device_has_more_modes_than_the_cpu() -> None:
    assert [c.params["mode"] for c in Compile().candidates(observation())] == ["default"]
    assert len(Compile().candidates(observation(device="cuda"))) == 4


def test_varying_shapes_and_repeated_blocks_are_candidates_of_their_own() -> None:
    model = root(shapes_vary=True, blocks={"h": 12, "small": 2})
    whole, dynamic, blocks = Compile().candidates(observation(roots=(model,)))
    assert dynamic.params == {"mode": "default", "dynamic": True}
    assert blocks.params == {"mode": "default", "blocks": "h"}
    assert blocks.one_off_s < whole.one_off_s  # type: ignore[operator]
    assert len(Compile().candidates(observation(roots=(root(blocks={"small": 2}),)))) == 1
    two = Compile().candidates(observation(roots=(model, model)))
    assert all("blocks" not in candidate.params for candidate in two)


def test_on_a_device_less_is_expected_of_blocks() -> None:
    """They keep the launches that hold back a device whose host is the limit."""
    model = root(blocks={"h": 12})
    on_cpu, on_gpu = (
        [c.prior for c in Compile().candidates(observation(device=device, roots=(model,)))]
        for device in ("cpu", "cuda")
    )
    assert on_cpu[0] - on_cpu[-1] < on_gpu[0] - on_gpu[-1]
    assert on_gpu[-1] == min(on_gpu)


def test_little_is_expected_of_a_recurrent_model() -> None:
    """Its kernels are a library's; compilation is not tried before anything else."""
    plain, recurrent = (
        Compile().candidates(observation(roots=(root(layer_counts=layers),)))[0].prior
        for layers in ({"Linear": 2}, {"Linear": 2, "LSTM": 1})
    )
    assert 1 < recurrent < 1.1 < plain


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class Tower(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.h = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.h:
            x = block(x)
        return self.head(x)


def test_blocks_are_found_and_share_the_code_of_the_first() -> None:
    torch._dynamo.reset()
    model = Tower()
    assert repeated_blocks(model) == {"h": 3}
    assert repeated_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))) == {}
    x = torch.randn(2, 8, requires_grad=True)
    plain = model(x)
    knob = Compile().knob({"blocks": "h"})
    activate(knob, model)
    model(x)
    assert not knob.effect()[0]
    for on in (True, False, True):
        knob.switch(on)
        output = model(x)
        torch.testing.assert_close(output, plain)
        output.sum().backward()
    on, evidence = knob.effect()
    assert on
    assert evidence == "1 compiled graphs for 3 blocks of h, 6 calls, 0 graph breaks"
    model.__dict__.pop("_compiled_call_impl")
    assert list(copy.deepcopy(model).state_dict()) == list(model.state_dict())


def test_without_the_container_it_has_no_effect() -> None:
    activation = Compile().activation({"blocks": "layers"})
    activate(activation, model := Tower())
    model(torch.randn(2, 8))
    assert activation.effect() == (False, "no block of layers was compiled")


def test_parameters_out_of_range_are_refused() -> None:
    Compile().validate({"mode": "reduce-overhead", "dynamic": True})
    with pytest.raises(ValueError, match="mode is 'fast'; allowed: default"):
        Compile().validate({"mode": "fast"})
    with pytest.raises(ValueError, match="blocks is 'a b'"):
        Compile().validate({"blocks": "a b"})
    with pytest.raises(ValueError, match="dynamic is 3"):
        Compile().validate({"dynamic": 3})


def test_more_layers_are_expected_to_take_longer_to_compile() -> None:
    small, large = (observation(roots=(root(layer_counts={"Conv2d": num}),)) for num in (15, 120))
    (quick,), (slow,) = (Compile().candidates(seen) for seen in (small, large))
    assert (quick.one_off_s, slow.one_off_s) == (pytest.approx(20, abs=2), pytest.approx(75, abs=6))
