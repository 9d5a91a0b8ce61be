"""What single calls of torch do on a virtual GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from .virtual_world import on_the_device

pytestmark = pytest.mark.slow

BACKWARDS = """
x = torch.randn(1 << 18, device="cuda", requires_grad=True)
for function in (F.relu, F.gelu, F.silu, F.mish):
    out = function(x).sum()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out.backward()
    print((torch.cuda.max_memory_allocated() - before) >> 20)
    x.grad = None
"""


def test_an_activation_has_one_kernel_in_the_backward(tmp_path: Path) -> None:
    assert on_the_device(tmp_path, BACKWARDS) == ["1"] * 4
