"""Libraries that are told to train on the CPU: the plan is of the device all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from .planning import plan

pytest.importorskip("torch")

from hotloop.probe.virtual_gpu.cpu_switches import ignore_cpu_switches


class _State:
    """As accelerate's: it raises where it is told of a CPU that it does not use."""

    def __init__(self, mixed_precision: str | None = None, cpu: bool = False, **kwargs: bool) -> None:
        self.told = (mixed_precision, cpu or "ACCELERATE_USE_CPU" in os.environ, kwargs)


class _Arguments:
    def __init__(self, use_cpu: bool) -> None:
        self.use_cpu = use_cpu
        self.__post_init__()

    def __post_init__(self) -> None:
        self.seen = self.use_cpu


def test_what_they_are_told_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    class Partial(_State):
        def __init__(self, cpu: bool = False, **kwargs: bool) -> None:
            super().__init__(None, cpu, **kwargs)

    modules = {
        "accelerate.state": SimpleNamespace(PartialState=Partial, AcceleratorState=_State),
        "transformers.training_args": SimpleNamespace(TrainingArguments=_Arguments),
    }
    for name, module in modules.items():
        made = ModuleType(name)
        vars(made).update(vars(module))
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")

    def at_once(_: str, then: Callable[[], None]) -> None:
        then()

    for cls, method in ((_State, "__init__"), (_Arguments, "__post_init__")):
        monkeypatch.setattr(cls, method, getattr(cls, method))
    ignore_cpu_switches(at_once)
    assert Partial(True, backend=False).told == (None, False, {"backend": False})
    assert _State("bf16", cpu=True).told == ("bf16", False, {})
    assert not _Arguments(use_cpu=True).seen


TRAINER = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
config = dict(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
BertForSequenceClassification(BertConfig(**config)).save_pretrained("base")
rows = [{"input_ids": torch.randint(0, 64, (16,)), "labels": 1} for _ in range(256)]
arguments = TrainingArguments("out", use_cpu=True, report_to=[], max_steps=30, save_strategy="no")
Trainer(BertForSequenceClassification.from_pretrained("base"), arguments, train_dataset=rows).train()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_trainer_that_is_told_to_stay_on_the_cpu_is_planned_for_the_device(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER)
    found = plan(tmp_path, sys.executable, "train.py")
    assert found["by_name"]["as it is"]["held"]["by_class"]["optimizer_state"] > 0
