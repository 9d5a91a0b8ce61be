"""Memory of steps whose tensors are known, from the allocations to the observation."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from hotloop.model.step_memory import StepMemory
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import NS, Span
from hotloop.observe.profile.memory import read_memory
from hotloop.observe.profile.memory_account import account_of
from hotloop.probe.instruments.memory import Memory, _Allocation, _busiest
from hotloop.probe.probe import Probe
from hotloop.probe.record.events import Kind
from hotloop.probe.record.result_file import packed
from tests.probe.instruments.live_bytes import LiveBytes

BATCH, WIDTH, MIDDLE, CLASSES = 32, 64, 1024, 10
STEPS = 3


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, MIDDLE)
        self.act = nn.Tanh()
        self.last = nn.Linear(MIDDLE, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.act(self.first(x)))
        return out


class _Lead:
    """Records of a process: the forwards and backwards of its steps."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def add(self, kind: Kind, begin_ns: int, end_ns: int) -> None:
        self.spans.append(Span(kind, 0, begin_ns * NS, end_ns * NS, 0.0, 0))


def _trained(probe: Probe, lead: _Lead) -> dict[str, Any]:
    from time import monotonic_ns

    gc.collect()
    model, x = _Model(), torch.rand(BATCH, WIDTH)
    optimizer = torch.optim.Adam(model.parameters())
    y = torch.randint(0, CLASSES, (BATCH,))

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        begin = monotonic_ns()
        loss = nn.functional.cross_entropy(model(x), y)
        lead.add(Kind.FORWARD, begin, monotonic_ns())
        begin = monotonic_ns()
        loss.backward()
        lead.add(Kind.BACKWARD, begin, monotonic_ns())
        optimizer.step()

    step()
    memory = Memory(probe)
    memory.start()
    for _ in range(STEPS):
        step()
        memory.step()
    value: dict[str, Any] = memory.stop()
    return value


@pytest.fixture
def seen(probe: Probe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StepMemory:
    """What is read of three steps."""
    # Another test of this process may have compiled something.
    monkeypatch.setattr(probe, "compiles", lambda: False)
    lead = _Lead()
    value = _trained(probe, lead)
    file = DeepFile(name="memory", pid=1, rank=None, steps=STEPS, begin_ns=0, end_ns=1, value=value)
    found = read_memory(tmp_path, file, lead)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_each_module_has_its_parameters_their_gradients_and_their_state(seen: StepMemory) -> None:
    assert seen.modules is not None
    rows = {row.path: row for row in seen.modules}
    assert set(rows) == {"first", "act", "last"}
    first = rows["first"]
    assert first.parameter_bytes == first.gradient_bytes == 4 * (WIDTH + 1) * MIDDLE
    assert first.optimizer_bytes == pytest.approx(2 * first.parameter_bytes, abs=16)
    assert rows["act"].parameter_bytes == 0
    assert first.cls == "Linear"


def test_what_a_module_keeps_for_the_backward_is_its_own(seen: StepMemory) -> None:
    assert seen.modules is not None
    rows = {row.path: row for row in seen.modules}
    assert rows["act"].activation_bytes == 4 * BATCH * MIDDLE
    assert rows["first"].activation_bytes == 0, "tanh's backward needs its output alone"
    assert rows["last"].activation_bytes == 4 * BATCH * CLASSES


def test_the_forward_keeps_what_the_backward_gives_back(seen: StepMemory) -> None:
    assert not seen.absolute, "of a host only what is above its lowest moment is known"
    assert len(seen.steps_s) == STEPS
    forward, backward = seen.phases["forward"], seen.phases["backward"]
    assert forward.change_bytes >= 4 * BATCH * MIDDLE
    assert backward.change_bytes == pytest.approx(-forward.change_bytes, rel=0.1)
    assert backward.peak_bytes <= seen.peak_bytes
    assert max(seen.bytes) == seen.peak_bytes
    assert list(seen.times_s) == sorted(seen.times_s)


def test_it_ends_where_steps_end_within_the_optimizers_hooks(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe sees steps end in a hook of torch's: taking another one away there would break torch's loop."""
    monkeypatch.setattr(probe, "compiles", lambda: False)
    memory = Memory(probe)
    optimizer = torch.optim.SGD(_Model().parameters())
    values = []
    handle = register_optimizer_step_post_hook(lambda *_: values.append(memory.stop()))
    gc.collect()
    memory.start()
    try:
        optimizer.step()
    finally:
        handle.remove()
    assert len(values) == 1, "torch's loop over its hooks went to its end"
    assert len(values[0]["ends_ns"]) == 1


def test_it_works_where_the_program_s_own_profiles_are_kept_off(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a plan does that switches debugging tools off; it is looked at, too."""
    monkeypatch.setattr(torch.autograd.profiler.profile, "__enter__", lambda profile: profile)
    assert len(_trained(probe, _Lead())["sizes"])


def test_modules_of_a_compiling_program_are_left_alone(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "compiles", lambda: True)
    value = _trained(probe, _Lead())
    assert value["modules"] == []
    assert len(value["sizes"])


def test_an_accelerator_goes_before_the_host_and_the_busiest_of_several_is_shown() -> None:
    host = [_Allocation(1, 0, 1 << 30, 1 << 30)]
    idle, busy = [_Allocation(1, 1, 8, 8)], [_Allocation(3, 2, -16, 84), _Allocation(2, 2, 16, 100)]
    assert _busiest({"cpu": host, "cuda:0": idle, "cuda:1": busy}) == ("cuda:1", sorted(busy))
    assert _busiest({"cpu": host}) == ("cpu", host)
    assert _busiest({}) == (None, [])


def test_on_a_device_the_curve_is_all_that_tensors_take(tmp_path: Path) -> None:
    value = {
        "device": "cuda:0",
        "base_bytes": 1000,
        "times_ns": packed("q", [10, 20, 30]),
        "addresses": packed("Q", [1, 2, 1]),
        "sizes": packed("q", [100, 50, -100]),
        "ends_ns": [0, 40],
        "calls": [[0, 5, 25, 0]],
        "modules": [{"path": "m", "cls": "M", "parameters": 0, "gradients": 0, "buffers": 0, "optimizer": 0}],
    }
    file = DeepFile(name="memory", pid=1, rank=None, steps=1, begin_ns=0, end_ns=40, value=value)
    seen = read_memory(tmp_path, file, _Lead())  # type: ignore[arg-type]
    assert seen is not None
    assert seen.absolute
    assert seen.bytes == (1000, 1100, 1150, 1050)
    assert seen.modules is not None
    assert seen.modules[0].activation_bytes == 150, "both outlive the model's call"


def test_the_account_adds_up_and_names_the_classes(seen: StepMemory) -> None:
    account = seen.account
    assert account is not None
    parameters = 4 * ((WIDTH + 1) * MIDDLE + (MIDDLE + 1) * CLASSES)
    by_class = account.held.by_class
    assert sum(by_class.values()) == account.peak_bytes
    assert by_class["parameters"] >= parameters, "models of other tests may be alive"
    assert by_class["gradients"] >= parameters, "zero_grad(set_to_none=False) keeps them through the forward"
    assert by_class["optimizer_state"] >= 2 * parameters
    assert "unattributed" not in by_class
    assert account.low_bytes <= account.peak_bytes == account.high_bytes


def test_the_account_names_the_lines_that_save_most(seen: StepMemory) -> None:
    account = seen.account
    assert account is not None
    saved = {one.function: one for one in account.activations}
    assert saved["forward"].held_bytes >= 4 * BATCH * MIDDLE
    assert saved["forward"].path == __file__
    assert set(account.phases) >= {"forward", "backward"}


def test_the_account_is_what_an_independent_count_says(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count: storages that are alive after each operation, by weak references; it sees no working memory."""
    monkeypatch.setattr(probe, "compiles", lambda: False)
    plain, watched = LiveBytes(), _Lead()
    with plain:
        _trained(probe, _Lead())
    tensors = [one for one in gc.get_objects() if type(one) in (torch.Tensor, nn.Parameter)]
    before = {one.untyped_storage().data_ptr() for one in tensors}  # what other tests have left
    value = _trained(probe, watched)
    account = account_of(value, STEPS, watched)  # type: ignore[arg-type]
    assert account is not None
    older = sum(row["bytes"] for row in value["base"] if row["address"] in before)
    assert account.peak_bytes - older == pytest.approx(plain.peak, rel=0.03)


def test_what_nobody_holds_is_shown_as_unattributed() -> None:
    """On a device the allocator says how much it had given out before."""
    value = {
        "device": "cuda:0",
        "base_bytes": 1000,
        "times_ns": packed("q", [10, 20, 30]),
        "addresses": packed("Q", [1, 2, 1]),
        "sizes": packed("q", [100, 50, -100]),
        "ends_ns": [0, 40],
        "calls": [],
        "modules": [],
        "base": [
            {"address": 7, "bytes": 600, "class": 0, "device": "cuda:0", "graph": False},
            {"address": 8, "bytes": 90, "class": 0, "device": "cpu", "graph": False},
        ],
        "marks": [],
        "operations": None,
    }
    account = account_of(value, 1, _Lead())  # type: ignore[arg-type]
    assert account is not None
    assert account.peak_bytes == 1150
    assert account.held.by_class == {"parameters": 600, "unattributed": 400, "temporaries": 150}
    assert account.unattributed_bytes == 400
