"""Models that are not plain modules any more when they are called: each is found, however it was made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hotloop.observe.decode.spans import timelines
from hotloop.probe.record.events import Kind

from .conftest import RunProgram

CALLS = 200
FORMS = """
import torch, warnings
from torch import nn
from torch.fx.experimental.optimization import fuse
warnings.simplefilter("ignore")
def net():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()
images = torch.randn(2, 3, 8, 8)
flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)).eval()
forms = {
    "frozen": lambda: torch.jit.freeze(torch.jit.script(net())),
    "fused": lambda: fuse(net()),
    "quantized": lambda: torch.ao.quantization.quantize_dynamic(flat, {nn.Linear}),
}
with torch.inference_mode():
    model = forms[FORM]()
    for _ in range(200):
        model(images)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_each_form_is_found(run_probed: RunProgram, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for form in ("frozen", "fused", "quantized"):
        done = run_probed(f"FORM = {form!r}\n{FORMS}")
        assert done.returncode == 0, done.stderr
        known = timelines(tmp_path / "probe", {})
        seen[form] = sum(span.kind is Kind.EVALUATE for each in known.values() for span in each.spans)
        for path in (tmp_path / "probe").iterdir():
            path.unlink()
    assert seen["fused"] == seen["quantized"] == CALLS
    assert seen["frozen"] > CALLS / 2, "what a scripted module without parameters is takes some calls to tell"
