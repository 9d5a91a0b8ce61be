"""The shipped plug-in: found by its entry point, compared, exchanged, refused where it is wrong, written down."""

from __future__ import annotations

import copy
import pickle
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.tuning import PlanStep
from hotloop.optimize import registry
from hotloop.optimize.optimization import DoesNotApply
from hotloop.patch.rewrite_plan import rewrite_plan

from ..patch.observing import observe_all
from .harness import activate, observation, root

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin_kernel"


class RMSNorm(nn.Module):  # type: ignore[misc]
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.eps = 1e-6
        self.weight = nn.Parameter(torch.rand(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(EXAMPLE), *sys.path])
    point = EntryPoint("rms_norm_kernel", "plugin_kernel.optimization:RmsNormKernel", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: [point])
    return registry.get("rms_norm_kernel")


def trained(model: Any) -> list[torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    output = model(torch.randn(4, 8))
    output.square().sum().backward()
    return [output.detach(), *(p.grad.clone() for p in model.parameters())]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), RMSNorm(8), nn.Linear(8, 8), RMSNorm(8))


def test_it_acts_and_computes_the_same(plugin: Any) -> None:
    net = model()
    plain = trained(net)
    activation = plugin.activation({})
    activate(activation, net)
    for _ in range(2):
        for one, other in zip(plain, trained(net), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    on, evidence = activation.effect()
    assert on
    assert "RMSNorm: outputs and gradients within" in evidence
    assert "2 calls counted" in evidence
    net.__dict__.pop("_compiled_call_impl")
    assert [type(each) for each in pickle.loads(pickle.dumps(net))] == [
        nn.Linear,
        RMSNorm,
        nn.Linear,
        RMSNorm,
    ]
    assert list(copy.deepcopy(net).state_dict()) == list(net.state_dict())


def test_it_goes_on_and_off(plugin: Any) -> None:
    net, knob = model(), plugin.knob({})
    activate(knob, net)
    trained(net)
    for on in (True, False):
        knob.switch(on)
        trained(net)
        assert (type(net[1]) is RMSNorm) is not on
    assert knob.effect()[0]


def test_a_wrong_kernel_is_refused(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import plugin_kernel.rms_norm as kernel  # type: ignore[import-not-found]

    monkeypatch.setattr(kernel, "rms_norm", lambda x, weight, eps: x * weight)
    net, activation = model(), plugin.activation({})
    activate(activation, net)
    trained(net)
    trained(net)
    on, evidence = activation.effect()
    assert not on
    assert "RMSNorm: its outputs differ by" in evidence
    assert type(net[1]) is RMSNorm


def test_it_applies_to_models_that_have_such_modules(plugin: Any) -> None:
    assert plugin.candidates(observation(roots=(root(layer_counts={"RMSNorm": 2}),)))
    with pytest.raises(DoesNotApply, match="the model has no RMSNorm"):
        plugin.candidates(observation())
    torch_s_own = plugin.activation({})
    activate(torch_s_own, net := nn.Sequential(nn.RMSNorm(8)))
    trained(net)
    assert torch_s_own.effect() == (False, "left: RMSNorm: it is torch's own, which has a kernel")


@pytest.mark.slow
def test_it_is_written_into_the_source(plugin: Any, tmp_path: Path) -> None:
    text = (EXAMPLE / "train.py").read_text().replace("range(2000)", "range(2)")
    sites = observe_all({"train": text}, tmp_path)["train"]
    step = PlanStep(name=plugin.name, params={}, ratio=1.0, low=1.0, high=1.0)
    patch = rewrite_plan([step], sites, {"train.py": text.encode()})
    after = patch.after["train.py"].decode()
    assert "model = Model()\nplugin_kernel.use_fused_rms_norm(model)\n" in after
    assert "import plugin_kernel\n" in after
    assert rewrite_plan([step], patch.sites, patch.after).after == patch.after
