"""Which loaders feed the steps, where no batch is taken between them: a thread may take them, or nobody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.program import LoaderFacts
from hotloop.observe.decode.processes import program_facts, read_processes
from hotloop.optimize.loaders.training_loaders import training_loaders
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.process.config import ProbeConfig

from ..optimize.harness import loader, observation
from ..probe.conftest import run_python, with_probe

STEPS = 80
PROGRAM = f"""
import queue, threading, torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 4))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def steps(batches):
    for _, (rows,) in zip(range({STEPS}), batches):
        optimizer.zero_grad()
        model(rows).square().mean().backward()
        optimizer.step()
"""
ONCE = """
whole = next(iter(DataLoader(data, batch_size=64)))
steps(whole for _ in iter(int, 1))
"""
THREAD = """
ready = queue.Queue(4)

def fill():
    while True:
        for batch in DataLoader(data, batch_size=4):
            ready.put(batch)

threading.Thread(target=fill, daemon=True).start()
steps(iter(ready.get, None))
"""


def loaders(tmp_path: Path, taking: str) -> tuple[LoaderFacts, ...]:
    folder = tmp_path / "probe"
    done = run_python(["-c", PROGRAM + taking], with_probe(folder, ProbeConfig(folder=str(folder))), tmp_path)
    assert done.returncode == 0, done.stderr
    (raw,) = (facts for facts in read_processes(folder).values() if facts["steps"])
    return program_facts(raw, None).loaders


def test_a_batch_that_is_taken_once_feeds_no_step(tmp_path: Path) -> None:
    (seen,) = loaders(tmp_path, ONCE)
    assert seen.batches_per_step == 1 / STEPS
    with pytest.raises(DoesNotApply, match="fewer than one batch in 50 steps"):
        training_loaders(observation(loaders=(seen,)))


def test_what_a_thread_takes_is_counted(tmp_path: Path) -> None:
    (seen,) = loaders(tmp_path, THREAD)
    assert seen.batches_per_step is not None
    assert seen.batches_per_step >= 1
    assert training_loaders(observation(loaders=(seen,))) == (seen,)


def test_what_was_not_seen_is_not_held_against_a_loader() -> None:
    """A subclass whose iterators are its own gives batches that nobody counts."""
    unseen = loader(used_in_step=False, batches_per_step=0.0)
    assert training_loaders(observation(loaders=(unseen,))) == (unseen,)
    fed = loader(used_in_step=False, batches_per_step=1.0)
    assert training_loaders(observation(loaders=(unseen, fed))) == (fed,)
