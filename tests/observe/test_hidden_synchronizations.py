"""Programs with eight hidden synchronizations each: all are found, at their lines, and no other line of the program."""

from __future__ import annotations

import json
import pstats
from pathlib import Path
from typing import Any

import pytest

from .conftest import Observe, Observed

pytestmark = pytest.mark.slow

PLAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)

class Accuracy:
    def __init__(self):
        self.hits, self.history = 0.0, []

    def update(self, logits, labels):
        self.hits += float((logits.argmax(1) == labels).sum())  # sync
        self.history.append(logits.softmax(1).max(1).values.tolist())  # sync
        del self.history[:-1]

def line_of_log(step, loss):
    return f"step {step}: loss {loss:.4f}"  # sync

def check(loss):
    if torch.isnan(loss):  # sync
        raise RuntimeError("diverged")

def hard_ones(inputs, losses):
    return inputs[losses > losses.mean()]  # sync

def present(labels):
    return labels.unique()  # sync

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(256, 16), torch.randint(0, 4, (256,))), batch_size=32, shuffle=True)
accuracy, smooth, step = Accuracy(), 0.0, 0
while True:
    for inputs, labels in loader:
        optimizer.zero_grad()
        logits = model(inputs)
        losses = nn.functional.cross_entropy(logits, labels, reduction="none")
        loss = losses.mean()
        check(loss)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        smooth = 0.9 * smooth + 0.1 * norm.item()  # sync
        optimizer.step()
        accuracy.update(logits, labels)
        line_of_log(step, loss)
        hard_ones(inputs, losses)
        present(labels)
        kept = loss.detach().cpu()  # sync
        step += 1
"""

LIGHTNING = """
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)

class Gate(nn.Module):
    def forward(self, x):
        if x.abs().max() > 100:  # sync
            x = x.clamp(-100, 100)
        return x

class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), Gate(), nn.ReLU(), nn.Linear(32, 4))
        self.seen = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = nn.functional.cross_entropy(logits, y)
        self.log("loss", loss.item())  # sync
        self.seen.append(self.summary(logits, y))
        del self.seen[:-1]
        wrong = (logits.argmax(1) != y).nonzero()  # sync
        rows = [int(one) for one in y]  # sync
        return loss

    def summary(self, logits, y):
        assert y.min() >= 0  # sync
        return logits.detach().numpy().mean()  # sync

    def on_after_backward(self):
        total = sum(p.grad.norm() for p in self.parameters())
        str(total)  # sync

    def on_train_batch_end(self, outputs, batch, batch_idx):
        torch.equal(batch[1], batch[1])  # sync

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

data = TensorDataset(torch.randn(512, 16), torch.randint(0, 4, (512,)))
trainer = L.Trainer(max_epochs=10**6, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Lit(), DataLoader(data, batch_size=32))
"""

TRAINER = """
import os
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
torch.set_num_threads(1)

class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.ids = torch.randint(5, 90, (256, 8))
    def __len__(self):
        return 256
    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": int(self.ids[i, 0] > 40)}

class Watcher(TrainerCallback):
    def on_step_end(self, args, state, control, model=None, **kwargs):
        weight = model.classifier.weight.detach()
        weight.sum().item()  # sync
        bool(weight.isfinite().all())  # sync

class Ours(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        self.note(loss, outputs.logits)
        return (loss, outputs) if return_outputs else loss
    def note(self, loss, logits):
        "%.3f" % loss  # sync
        "{:.3f}".format(loss)  # sync
        round(float(loss), 3)  # sync
        logits.detach().cpu()  # sync
        logits.argmax(1).tolist()  # sync
        torch.masked_select(logits, logits > 0)  # sync

config = BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
arguments = TrainingArguments(output_dir="out", max_steps=10**6, per_device_train_batch_size=8, report_to=[],
                              save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True)
Ours(BertForSequenceClassification(config), arguments, train_dataset=Rows(), callbacks=[Watcher()]).train()
"""


def own_sites(run: Observed) -> list[dict[str, Any]]:
    """Return what the program's own lines call."""
    sites: list[dict[str, Any]] = run.seen["deep"]["call_sites"]["sites"]
    return [
        site for site in sites if site["path"] == str(run.folder / "train.py") and site["through"] is None
    ]


def marked(program: str) -> set[int]:
    """Return the lines that wait."""
    return {number for number, line in enumerate(program.splitlines(), start=1) if "# sync" in line}


def assert_all_found(run: Observed, program: str) -> None:
    """Compare the lines that were found with the marked ones."""
    assert run.code == 0, run.err
    assert len(marked(program)) == 8
    found = [site for site in own_sites(run) if site["kind"] == "sync"]
    assert {site["line"] for site in found} == marked(program)
    assert all(site["count_per_step"] >= 1 for site in found)
    assert all(0 <= site["low_s"] <= site["time_per_step_s"] <= site["high_s"] for site in found)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observed, Path]:
    """One observation of the plain program, with the files for other viewers."""
    from .conftest import run_observe

    base = tmp_path_factory.mktemp("hidden")
    folder = base / "project"
    folder.mkdir()
    files = ("--speedscope", str(base / "stacks.json"), "--cprofile", str(base / "stacks.prof"))
    return run_observe(folder, base, PLAIN, "--steps", "20", "--verbose", *files, deep=True), base


def test_a_plain_loop(plain: tuple[Observed, Path]) -> None:
    run, _ = plain
    assert_all_found(run, PLAIN)
    counts = {site["line"]: site["count_per_step"] for site in own_sites(run) if site["kind"] == "sync"}
    assert set(counts.values()) == {1.0}


def test_no_other_line_waits(plain: tuple[Observed, Path]) -> None:
    run, _ = plain
    sites = run.seen["deep"]["call_sites"]["sites"]
    assert {site["line"] for site in sites if site["kind"] == "sync"} == marked(PLAIN)


def test_the_step_is_that_of_the_light_measurement(plain: tuple[Observed, Path]) -> None:
    run, _ = plain
    parts = run.seen["run"]["parts"]
    assert parts["deep_windows_s"] > 0
    assert {gap["what"] for gap in run.seen["coverage"]}.isdisjoint(
        {"host", "call_sites", "detailed profiling"}
    )
    assert sum(parts.values()) == pytest.approx(run.seen["run"]["wall_s"])


def test_the_tables_are_80_columns_wide(plain: tuple[Observed, Path]) -> None:
    run, _ = plain
    assert all(len(line) <= 80 for line in run.out.splitlines())
    assert "bool(tensor)" in run.out
    assert "train.py:" in run.out


def test_host_samples_name_lines_of_the_program(plain: tuple[Observed, Path]) -> None:
    run, base = plain
    host = run.seen["deep"]["host"]
    assert {line["path"] for line in host["lines"] if line["process"] == "train"} == {
        str(run.folder / "train.py")
    }
    assert {"forward", "backward", "optimizer"} <= {line["phase"] for line in host["lines"]}
    backward = [line for line in host["lines"] if line["phase"] == "backward"]
    assert "loss.backward()" in PLAIN.splitlines()[backward[0]["line"] - 1]
    assert json.loads((base / "stacks.json").read_text())["profiles"]
    assert pstats.Stats(str(base / "stacks.prof")).total_tt > 0  # type: ignore[attr-defined]


def test_without_deep_windows_nothing_is_seen(observe: Observe) -> None:
    run = observe(PLAIN, "--steps", "10")
    assert run.code == 0, run.err
    assert run.seen["deep"] is None
    assert "deep_windows_s" not in run.seen["run"]["parts"]


@pytest.mark.parametrize(("program", "library"), [(LIGHTNING, "lightning"), (TRAINER, "transformers")])
def test_a_framework(observe: Observe, program: str, library: str) -> None:
    pytest.importorskip(library)
    assert_all_found(observe(program, "--steps", "20", deep=True), program)


WORKERS = """
import math, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Rows(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        total = 0.0
        for number in range(20000):
            total += math.log1p(number)  # slow
        return torch.full((8,), total), index % 2
def main():
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=8, num_workers=1, persistent_workers=KEEP, multiprocessing_context="START")
    while True:
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("keep", [True, False])
def test_the_workers_lines(observe: Observe, keep: bool, start: str) -> None:
    program = WORKERS.replace("KEEP", str(keep)).replace("START", start)
    run = observe(program, "--steps", "20", deep=True)
    assert run.code == 0, run.err
    lines = [line for line in run.seen["deep"]["host"]["lines"] if line["process"] == "worker"]
    slow = {number for number, line in enumerate(program.splitlines(), start=1) if "# slow" in line}
    share = sum(line["share"] for line in lines if line["line"] in {*slow, min(slow) - 1})
    assert share > 0.5
