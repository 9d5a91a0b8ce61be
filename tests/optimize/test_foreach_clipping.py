"""foreach_clipping: the same clipped gradients, taken together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import utils

from hotloop.optimize.catalogue.compute.foreach_clipping.activation import ClippingTogether
from hotloop.optimize.catalogue.compute.foreach_clipping.row import ForeachClipping
from hotloop.optimize.optimization import DoesNotApply

from .harness import observation, root


def clipped(how: Any) -> tuple[list[torch.Tensor], int]:
    """Return the gradients, and how many operations were called on single ones."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)])
    (model(torch.randn(4, 8)) * 100).square().sum().backward()
    with torch.profiler.profile() as profile:
        how(model.parameters())
    together = sum(each.count for each in profile.key_averages() if each.key.startswith("aten::_foreach"))
    return [each.grad.clone() for each in model.parameters() if each.grad is not None], together


WAYS = {
    "norm": lambda parameters: utils.clip_grad_norm_(parameters, 1.0, foreach=False),
    "infinite norm": lambda parameters: utils.clip_grad_norm_(parameters, 1.0, float("inf"), False, False),
    "value": lambda parameters: utils.clip_grad_value_(parameters, 0.1, foreach=False),
    "value, by place": lambda parameters: utils.clip_grad_value_(parameters, 0.1, False),
}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_the_gradients_are_the_same(how: Any) -> None:
    plain, before = clipped(how)
    activation = ForeachClipping().activation({})
    activation.on_torch()
    together, after = clipped(how)
    torch.testing.assert_close(plain, together, rtol=1e-6, atol=0)
    assert activation.effect()[0]
    assert before == 0
    assert after > 0


def test_it_goes_on_and_off() -> None:
    knob = ClippingTogether(at_once=False)
    knob.on_torch()
    assert clipped(WAYS["norm"])[1] == 0
    knob.switch(True)
    assert clipped(WAYS["norm"])[1] > 0
    assert knob.effect() == (True, "gradients were taken together 2x")


def test_what_is_clipped_together_already_is_no_effect() -> None:
    activation = ForeachClipping().activation({})
    activation.on_torch()
    clipped(lambda parameters: utils.clip_grad_norm_(parameters, 1.0))
    assert not activation.effect()[0]


def seen(folder: Path, text: str) -> Any:
    (folder / "train.py").write_text(text)
    return observation(roots=(root(code_files=(str(folder / "train.py"),)),))


@pytest.mark.parametrize(
    "text", ["clip_grad_norm_(p, 1.0, foreach=False)", "u.clip_grad_value_(p, 1.0, foreach=False)"]
)
def test_where_it_applies(tmp_path: Path, text: str) -> None:
    assert ForeachClipping().candidates(seen(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("clip_grad_norm_(p, 1.0)", "by itself"),
        ("clip_grad_norm_(p, 1.0, foreach=True)", "by itself"),
        ("step()", "does not clip"),
    ],
)
def test_where_it_does_not_apply(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        ForeachClipping().candidates(seen(tmp_path, text))
