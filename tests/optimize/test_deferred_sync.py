"""deferred_sync: what is logged or added up comes later and complete; what steers comes at once."""

from __future__ import annotations

import ast
import os
import textwrap
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from hotloop.model.deep import CallSite, CallSites, Deep
from hotloop.model.observation import Observation
from hotloop.optimize.catalogue.compute.deferred_sync.activation import LaterValues
from hotloop.optimize.catalogue.compute.deferred_sync.row import DeferredSync
from hotloop.optimize.optimization import DoesNotApply

from .harness import observation, root


class Slow:
    """The way from a device that is never done before it is waited for."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._value = tensor.detach().clone()

    def is_there(self) -> bool:
        return False

    def read(self) -> torch.Tensor:
        return self._value


def slow(value: Any) -> Slow | None:
    return Slow(value) if isinstance(value, torch.Tensor) else None


SETTING = """
import logging, torch
log = []
class Meter:
    def __init__(self):
        self.sum, self.avg, self.values = 0.0, 0.0, []
    def update(self, value, n=1):
        self.sum += value * n
        self.values.append(value)
        self.avg = self.sum / len(self.values)
class Scheduler:
    def __init__(self):
        self.seen = []
    def step(self, value):
        self.seen.append(value)
        events.append(("scheduler", value))
events = []
class Optimizer:
    def step(self):
        events.append("step")
optimizer, scheduler, losses = Optimizer(), Scheduler(), []
data = [torch.tensor(float(n)) for n in range(6)]
"""


def run(program: str, activation: LaterValues | None, capsys: Any) -> tuple[str, dict[str, Any]]:
    """Run a program, edited if there is an activation; return what it printed, and its names."""
    tree = ast.parse(SETTING + textwrap.dedent(program))
    names: dict[str, Any] = {"__name__": "__main__"}
    if activation is not None:
        activation.on_source("train.py", tree, names)
    try:
        exec(compile(ast.fix_missing_locations(tree), "train.py", "exec"), names)
    except SystemExit:
        print("exit")
    except RuntimeError as error:
        print("failed:", error)
    plain = (int, float, str, list, tuple, dict)
    return capsys.readouterr().out, {
        key: value
        for key, value in names.items()
        if isinstance(value, plain) and not key.startswith("_") and key not in {"data", "progress", "watch"}
    }


LATER = {
    "sum": """
        total = 0.0
        for x in data:
            optimizer.step()
            total += x.item()
        print(total)
    """,
    "printed in each step": """
        for i, x in enumerate(data):
            optimizer.step()
            print(f"step {i} loss {x.item():.4f}")
    """,
    "cifar": """
        def train():
            for epoch in range(2):
                running = 0.0
                for i, x in enumerate(data):
                    optimizer.step()
                    running += x.item() * x.dim()
                    if i % 2 == 1:
                        print(f"[{epoch + 1}, {i + 1:5d}] loss: {running / 2:.3f}")
                        running = 0.0
                print("epoch", epoch, running)
        train()
    """,
    "meters": """
        meter = Meter()
        progress = [meter]
        for i, x in enumerate(data):
            optimizer.step()
            meter.update(x.item(), 2)
            if i % 3 == 0:
                print(i, progress[0].avg)
        print(meter.sum, meter.values)
    """,
    "appended and kept": """
        history = {"loss": []}
        for x in data:
            optimizer.step()
            value = float(x.detach().cpu())
            history["loss"].append(value)
            losses.append(round(value, 2))
            log.append({"loss": value, "n": x.dim()})
        print(value, history, losses)
    """,
    "left by break": """
        for i, x in enumerate(data):
            optimizer.step()
            losses.append(x.item())
            if i == 3:
                break
        print(losses)
    """,
    "left by return": """
        def train():
            for i, x in enumerate(data):
                optimizer.step()
                losses.append(x.item())
                if i == 3:
                    return i
        print(train(), losses)
    """,
    "left by an error": """
        for i, x in enumerate(data):
            optimizer.step()
            print(i, x.item())
            if i == 3:
                raise RuntimeError("no space left")
    """,
    "left by exit": """
        import sys
        for i, x in enumerate(data):
            optimizer.step()
            print(i, x.tolist())
            if i == 3:
                sys.exit(1)
    """,
    "continue, with, while": """
        i, total = -1, 0.0
        while i < 5:
            i += 1
            if i == 2:
                continue
            with torch.no_grad():
                total += data[i].item()
                print("at", i, "of", total)
    """,
    "the output of a function between": """
        def evaluate():
            print("evaluated after", len(losses))
        for i, x in enumerate(data):
            optimizer.step()
            print("loss", x.item())
            if i % 2:
                evaluate()
    """,
    "a method's own sum": """
        class Trainer:
            def __init__(self):
                self.total, self.model = 0.0, None
            def fit(self):
                for x in data:
                    optimizer.step()
                    self.total += x.item()
                return self.total
        print(Trainer().fit())
    """,
    "a checkpoint now and then": """
        def save(name):
            events.append(name)
        for i, x in enumerate(data):
            optimizer.step()
            value = x.item()
            losses.append(value)
            if i % 3 == 2:
                save(f"model-{value:.2f}.pt")
        print(losses)
    """,
}


@pytest.mark.parametrize("program", LATER.values(), ids=LATER)
def test_the_program_says_and_keeps_what_it_did(program: str, capsys: Any) -> None:
    plain = run(program, None, capsys)
    activation = LaterValues(at_once=True, send=slow)
    assert run(program, activation, capsys) == plain
    on, evidence = activation.effect()
    assert on, evidence
    assert "train.py:" in evidence


STEERS = {
    "something that changes is printed beside it": """
        state = {"n": 0}
        for x in data:
            optimizer.step()
            state["n"] += 1
            print(state, x.item())
    """,
    "a branch": """
        best = 10.0
        for x in data:
            optimizer.step()
            if x.item() < best:
                best = x.item()
        print(best)
    """,
    "early stopping by a name": """
        for x in data:
            optimizer.step()
            value = x.item()
            losses.append(value)
            if value > 3:
                break
        print(losses)
    """,
    "early stopping by an object": """
        for x in data:
            optimizer.step()
            losses.append(x.item())
            if len(losses) > 2 and losses[-1] > losses[-2]:
                break
        print(losses)
    """,
    "a scheduler": """
        for x in data:
            optimizer.step()
            value = x.item()
            scheduler.step(value)
        print(value)
    """,
    "the name of a checkpoint": """
        def save(name):
            events.append(name)
        for x in data:
            optimizer.step()
            value = x.item()
            save(f"model-{value:.2f}.pt")
    """,
    "the loop's own condition": """
        value, i = 0.0, 0
        while value < 3:
            optimizer.step()
            value = data[i].item()
            i += 1
        print(i)
    """,
    "it leaves the function": """
        def step(x):
            for _ in range(1):
                optimizer.step()
                return x.item()
        print([step(x) for x in data])
    """,
    "it is given on": """
        def losses_of():
            for x in data:
                optimizer.step()
                yield x.item()
        print(list(losses_of()))
    """,
    "another function reads it": """
        total = 0.0
        def stop():
            return total > 3
        for x in data:
            optimizer.step()
            total += x.item()
            if stop():
                break
        print(total)
    """,
    "another name reads it": """
        meter = Meter()
        watch = [meter]
        for x in data:
            optimizer.step()
            meter.update(x.item())
            scheduler.step(watch[0].avg)
        print(meter.avg)
    """,
    "a method reads what a short name fills": """
        class Trainer:
            def __init__(self):
                self.history = []
            def converged(self):
                return len(self.history) > 2
            def fit(self):
                history = self.history
                for x in data:
                    optimizer.step()
                    history.append(x.item())
                    if self.converged():
                        break
                return history
        print(Trainer().fit())
    """,
    "an object that is called": """
        class Stopper:
            best = 10.0
            def __call__(self, value):
                self.stop = value > 2
        stopper = Stopper()
        for x in data:
            optimizer.step()
            stopper(x.item())
            if stopper.stop:
                break
        print(stopper.stop, x)
    """,
    "the optimizer": """
        groups = [{"lr": 1.0}]
        for x in data:
            optimizer.step()
            for group in groups:
                group["lr"] = x.item() / 2
            scheduler.seen.append(groups[0]["lr"])
        print(scheduler.seen)
    """,
    "it chooses what is evaluated": """
        for x in data:
            optimizer.step()
            print("high" if x.item() > 3 else "low")
    """,
    "it decides within a file": """
        import io
        for x in data:
            optimizer.step()
            with io.StringIO() as file:
                file.write(str(x.item()))
                print(file.getvalue())
    """,
}


@pytest.mark.parametrize("program", STEERS.values(), ids=STEERS)
def test_a_value_that_steers_comes_at_once(program: str, capsys: Any) -> None:
    plain = run(program, None, capsys)
    activation = LaterValues(at_once=True, send=slow)
    assert run(program, activation, capsys) == plain
    on, evidence = activation.effect()
    assert not on, evidence


def test_the_device_has_a_step_before_its_value_is_read(capsys: Any) -> None:
    order: list[str] = []

    class Noting(Slow):
        def __init__(self, tensor: torch.Tensor) -> None:
            super().__init__(tensor)
            order.append(f"sent {int(tensor)}")

        def read(self) -> torch.Tensor:
            order.append(f"read {int(self._value)}")
            return super().read()

    run(LATER["sum"], LaterValues(at_once=True, send=Noting), capsys)
    assert order[:5] == ["sent 0", "sent 1", "read 0", "sent 2", "read 1"]
    assert order[-3:] == ["sent 5", "read 4", "read 5"]


def test_on_the_cpu_everything_is_as_it_was(capsys: Any) -> None:
    activation = LaterValues(at_once=True)
    assert run(LATER["meters"], activation, capsys) == run(LATER["meters"], None, capsys)
    assert not activation.effect()[0]


def test_it_goes_on_and_off(capsys: Any) -> None:
    knob = LaterValues(at_once=False, send=slow)
    run(LATER["sum"], knob, capsys)
    assert not knob.effect()[0]
    knob.switch(True)
    assert run(LATER["sum"], knob, capsys) == run(LATER["sum"], None, capsys)
    assert knob.effect()[0]


def test_a_traceback_names_the_user_s_lines() -> None:
    program = SETTING + "for x in data:\n    optimizer.step()\n    losses.append(x.item())\n    1 / 0\n"
    tree, names = ast.parse(program), dict[str, Any]()
    LaterValues(at_once=True, send=slow).on_source("train.py", tree, names)
    try:
        exec(compile(tree, "train.py", "exec"), names)
    except ZeroDivisionError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        assert (last.filename, last.lineno) == ("train.py", program.count("\n"))


def seen(folder: Path, text: str, line: int | None = 5, device: str = "cuda") -> Observation:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    measured = observation(roots=(root(code_files=(str(path),)),), device=device)
    site = CallSite(
        path=os.fspath(path),
        line=line or 1,
        function="train",
        call=".item()",
        kind="sync",
        device=device,
        count_per_step=1.0,
        time_per_step_s=0.2,
        low_s=0.1,
        high_s=0.3,
    )
    sites = CallSites(num_steps=5, window_s=5.0, sites=(site,) if line else ())
    return msgspec.structs.replace(measured, deep=Deep(call_sites=sites))


def test_it_applies_where_a_line_waits_and_can_be_put_off(tmp_path: Path) -> None:
    (candidate,) = DeferredSync().candidates(seen(tmp_path, LATER["sum"]))
    assert 1.05 < candidate.prior < 1.3


@pytest.mark.parametrize(
    ("program", "line", "device", "reason"),
    [
        ("sum", 5, "cpu", "computes on the CPU"),
        ("sum", None, "cuda", "no line of the step waits"),
        ("sum", 5, "mps", "values on mps devices"),
        ("a branch", 5, "cuda", "train.py:5: it decides where the program goes"),
        ("a scheduler", 4, "cuda", "train.py:4: value: line 5 uses it in every turn"),
    ],
)
def test_where_it_does_not_apply(
    tmp_path: Path, program: str, line: int | None, device: str, reason: str
) -> None:
    text = {**LATER, **STEERS}[program]
    with pytest.raises(DoesNotApply, match=reason):
        DeferredSync().candidates(seen(tmp_path, text, line, device))
