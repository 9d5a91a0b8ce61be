"""What programs ask of `torch.cuda` beside computing, in one program on a virtual GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from .planning import plan

pytestmark = pytest.mark.slow

ASKS = """
import copy
import threading

import numpy
import torch
from torch import nn

Tensor = torch.cuda.FloatTensor
filled = Tensor(4, 2).fill_(1.0)
given = Tensor(numpy.random.normal(0, 1, (4, 2)))
assert filled.is_cuda and given.dtype is torch.float32 and given.shape == (4, 2)
assert Tensor([1.0, 2.0]).shape == (2,) and Tensor(torch.Size([3])).shape == (3,) and Tensor().numel() == 0
assert torch.ones(2).type(Tensor).is_cuda and torch.ones(2).type("torch.cuda.LongTensor").dtype is torch.int64
assert isinstance(filled, Tensor) and not isinstance(torch.ones(2), Tensor)
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.zeros(2).is_cuda
torch.set_default_tensor_type("torch.FloatTensor")
assert not torch.zeros(2).is_cuda

with torch.cuda.nvtx.range("step"):
    torch.cuda.nvtx.mark("here")
torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("part"))
torch.cuda.memory._record_memory_history(max_entries=100)
torch.cuda.memory._dump_snapshot("snapshot.pickle")
assert torch.cuda.memory_snapshot() == [] and torch.cuda.get_allocator_backend() == "native"
assert torch.cuda.memory.memory_allocated() == torch.cuda.memory_allocated() > 0

assert torch.empty(3, pin_memory=True).device.type == "cpu"
assert torch.ones_like(torch.ones(3), pin_memory=True).device.type == "cpu"
assert torch.version.cuda and torch.backends.cudnn.is_available() and torch.backends.cudnn.version() > 9000
assert torch.cuda.nccl.version() >= (2, 0)
properties = torch.cuda.get_device_properties(0)
assert len(str(properties.uuid)) == 36 and properties.L2_cache_size > 0

moved = []
def move():
    there = torch.rand(3).cuda()
    moved.append((there * 2 + torch.rand(3, device="cuda")).sum().item())
thread = threading.Thread(target=move)
thread.start()
thread.join()
assert len(moved) == 1

model = nn.Sequential(nn.Linear(256, 1024), nn.LSTM(1024, 32)).cuda()
average, teacher = copy.deepcopy(model), nn.Linear(256, 1024).cuda().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    with torch.no_grad():
        teacher(torch.randn(64, 256, device="cuda"))
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(torch.randn(64, 256, device="cuda"))[0].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

OPERATORS = """
import torch
from torch import nn
from torch.distributions import Beta, Dirichlet

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 30)).cuda()
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)]
optimizers += [torch.optim.Adagrad(model.parameters(), fused=True)]
labels, lengths = torch.randint(1, 30, (16, 20)), torch.full((16,), 20)
for step in range(40):
    scores = model(torch.randn(50, 16, 64, device="cuda"))
    loss = nn.functional.ctc_loss(scores.log_softmax(-1), labels.cuda(), torch.full((16,), 50), lengths)
    loss = loss + nn.functional.multi_margin_loss(scores[0], labels[:, 0].cuda())
    loss = loss + nn.functional.multilabel_margin_loss(scores[1].sigmoid(), torch.zeros_like(scores[1]).long())
    mixed = Beta(torch.ones(16, device="cuda"), torch.ones(16, device="cuda")).rsample()
    assert mixed.is_cuda and Dirichlet(torch.ones(16, 3, device="cuda")).sample().shape == (16, 3)
    optimizer = optimizers[step % 2]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_operators_without_a_shape_rule_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OPERATORS)
    held = plan(tmp_path, "train.py")["by_name"]["as it is"]["held"]["by_class"]
    weights = 4 * (64 * 256 + 256 + 256 * 30 + 30)
    assert held["optimizer_state"] == pytest.approx(2 * weights, rel=0.01)


def test_a_program_is_answered_as_by_a_device(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ASKS)
    peak = plan(tmp_path, "train.py")["by_name"]["as it is"]
    linear, recurrent = 4 * (256 * 1024 + 1024), 4 * 4 * (1024 * 32 + 32 * 32 + 2 * 32)
    # The model, its average that no step calls, and the frozen teacher.
    assert peak["held"]["by_class"]["parameters"] == pytest.approx(3 * linear + 2 * recurrent, rel=0.01)
