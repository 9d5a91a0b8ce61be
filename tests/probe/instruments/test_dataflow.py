"""What operations compute again, and which gradients nobody reads."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.model.dataflow import Dataflow, OperationGroup
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.dataflow import read_dataflow
from hotloop.probe.instruments.dataflow import Dataflow as Instrument
from hotloop.probe.instruments.value_numbers import is_unknown
from hotloop.probe.probe import Probe

Run = Callable[[str], "Seen"]


class Seen:
    """What was seen of a program, by the marks of its lines."""

    def __init__(self, flow: Dataflow, text: str) -> None:
        self.flow = flow
        self._marks = {number: line.partition("# ")[2] for number, line in enumerate(text.splitlines(), 1)}

    def sums(self, measure: str) -> dict[str, float]:
        """Return what was measured under each innermost mark."""
        found: dict[str, float] = {}
        for group in self.flow.groups:
            value = getattr(group, measure)
            if value:
                mark = self._mark(group)
                found[mark] = found.get(mark, 0.0) + value
        return found

    def _mark(self, group: OperationGroup) -> str:
        marks = [self._marks[self.flow.lines[one].line] for one in group.lines if self._users(one)]
        return next((mark for mark in reversed(marks) if mark), "")

    def _users(self, number: int) -> bool:
        return self.flow.lines[number].path.endswith("flowing_program.py")

    def again(self) -> dict[str, float]:
        """Return what each line's backward passes went through again."""
        return {self._marks[one.line]: one.again_s for one in self.flow.backwards}


@pytest.fixture
def run(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a program's function `step` in a window of four steps."""
    monkeypatch.setattr(probe, "compiles", lambda: False)  # another test of this process may have
    monkeypatch.syspath_prepend(str(tmp_path))

    def seen(text: str) -> Seen:
        text = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n" + textwrap.dedent(
            text
        )
        (tmp_path / "flowing_program.py").write_text(text)
        flowing_program: Any = import_module("flowing_program")
        flowing_program.step()
        window = Instrument(probe)
        window.start()
        for _ in range(4):
            flowing_program.step()
            window.step()
        value = window.stop()
        assert probe.facts.notes == []
        file = DeepFile(name="dataflow", pid=1, rank=None, steps=4, begin_ns=0, end_ns=1, value=value)
        return Seen(read_dataflow(tmp_path, file, Timeline.__new__(Timeline)), text)

    yield seen
    sys.modules.pop("flowing_program", None)


def test_a_module_called_again_on_the_same_input_is_repeated_and_others_are_not(run: Run) -> None:
    seen = run("""
        key, query, out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        model = nn.ModuleList([key, query, out])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            memory, state = torch.randn(4, 8), torch.randn(4, 8)
            for _ in range(3):
                keys = torch.tanh(key(memory))  # key
                state = query(state) * keys  # query
                noise = F.dropout(memory)  # chance
            optimizer.zero_grad()
            (out(state).sum() + noise.sum()).backward()
            optimizer.step()
    """)
    assert set(seen.sums("repeated_s")) == {"key"}
    assert set(seen.sums("again_backward_s")) == {"key"}
    assert seen.sums("constant_s") == {}
    assert seen.sums("unheld_s") == seen.sums("dropped_s") == {}


def test_values_written_in_place_are_others(run: Run) -> None:
    seen = run("""
        weight = torch.randn(8, 8)

        def step():
            x = torch.randn(8, 8)
            for _ in range(3):
                y = x @ weight  # changed
                x.add_(1.0)
            weight.data.add_(y, alpha=0.1)
    """)
    assert seen.sums("repeated_s") == seen.sums("constant_s") == {}


def test_a_table_that_is_made_in_each_step_is_constant_and_what_is_trained_is_not(run: Run) -> None:
    seen = run("""
        layer = nn.Linear(8, 8)
        optimizer = torch.optim.Adam(layer.parameters())

        def table(n):
            angles = torch.arange(n).float()[:, None] * torch.exp(torch.arange(4).float())  # table
            return torch.cat([angles.sin(), angles.cos()], 1)  # table

        def step():
            positions = table(16)
            optimizer.zero_grad()
            layer(positions).square().mean().backward()  # trained
            optimizer.step()
    """)
    assert set(seen.sums("constant_s")) == {"table"}
    assert seen.sums("repeated_s") == {}


def test_a_weight_that_is_made_at_each_call_is_repeated(run: Run) -> None:
    seen = run("""
        cell = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)

        def step():
            h = torch.randn(4, 8)
            for _ in range(3):
                h = cell(h)  # cell
            optimizer.zero_grad()
            h.sum().backward()
            optimizer.step()
    """)
    assert set(seen.sums("repeated_s")) == {"cell"}
    assert any(group.parametrized and group.repeated_s for group in seen.flow.groups)


def test_what_a_backward_pass_has_freed_is_computed_again_for_a_reason(run: Run) -> None:
    seen = run("""
        cell = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            for _ in range(3):
                cell(torch.randn(4, 8)).sum().backward()
            optimizer.step()
    """)
    assert seen.sums("repeated_s") == {}


def test_backward_passes_through_one_graph(run: Run) -> None:
    seen = run("""
        trunk, a, b = nn.Linear(8, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        optimizer = torch.optim.SGD([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=0.1)

        def step():
            h = trunk(torch.randn(4, 8)).tanh()
            optimizer.zero_grad()
            a(h).sum().backward(retain_graph=True)  # first
            b(h).sum().backward(retain_graph=True)  # second
            kept = [p.grad.clone() for p in trunk.parameters()]
            b(h).square().sum().backward()  # apart
            optimizer.step()
    """)
    again = seen.again()
    assert again["first"] == 0 < again["second"]
    assert again["apart"] == 0, "the gradients were read before"


def test_gradients_of_a_teacher_that_nobody_holds(run: Run) -> None:
    seen = run("""
        student, teacher = nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

        def step():
            x = torch.randn(4, 8)
            wanted = teacher(x)  # teacher
            got = student(x)  # student
            optimizer.zero_grad()
            (got - wanted.detach()).square().mean().backward(retain_graph=True)
            (got - wanted).square().mean().backward()
            optimizer.step()
    """)
    assert set(seen.sums("unheld_s")) == {"teacher"}
    assert set(seen.sums("unheld_graph_s")) == {"teacher"}
    assert seen.sums("dropped_s") == {}


def test_parameters_that_the_program_updates_by_hand_are_held(run: Run) -> None:
    seen = run("""
        student, other = nn.Linear(8, 4), nn.Linear(8, 4)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

        def step():
            x = torch.randn(4, 8)
            optimizer.zero_grad()
            (student(x) - other(x)).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for p in other.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
    """)
    assert seen.sums("unheld_s") == seen.sums("dropped_s") == {}


_GAN = """
    generator, critic = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    of_g = torch.optim.SGD(generator.parameters(), lr=0.1)
    of_d = torch.optim.SGD(critic.parameters(), lr=0.1)

    def step():
        fake = generator(torch.randn(4, 8))  # made
        of_d.zero_grad()
        judged = critic(fake{detach})  # critic
        judged.mean().backward()
        of_d.step()
        of_g.zero_grad()
        other = generator(torch.randn(4, 8))  # generator
        of_d.zero_grad()
        (-critic(other).mean()).backward()  # through
        of_g.step()
"""


@pytest.mark.parametrize(("detach", "wholly"), [("", {"made"}), (".detach()", set())])
def test_gradients_that_are_dropped(run: Run, detach: str, wholly: set[str]) -> None:
    seen = run(_GAN.format(detach=detach))
    dropped = seen.sums("dropped_s")
    assert wholly <= set(dropped)
    assert set(dropped) - wholly == {"through"}, "gradients of the critic's weights, of the generator's loss"
    assert seen.sums("unheld_s") == {}


@pytest.mark.parametrize(
    ("change", "unread"),
    [
        ("", {"first"}),
        ("direction = x.grad.sign()", set()),
        ("kept.append(x.grad)", set()),
        ("x.grad.numpy()", set()),
        ("x.requires_grad_(False).add_(x.grad)", set()),
    ],
)
def test_gradients_of_an_input_that_nobody_reads(run: Run, change: str, unread: set[str]) -> None:
    seen = run(f"""
        first, second = nn.Linear(32, 32), nn.Linear(32, 2)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        kept = []

        def step():
            x = torch.randn(16, 32).requires_grad_(True)
            optimizer.zero_grad()
            h = first(x)  # first
            second(h).sum().backward()
            optimizer.step()
            {change}
    """)
    assert set(seen.sums("unread_s")) == unread
    assert seen.sums("unheld_s") == seen.sums("dropped_s") == {}


@pytest.mark.parametrize(
    "passes",
    [
        "h = first(x); cut = h.detach().requires_grad_(True); second(cut).sum().backward(); h.backward(cut.grad)",
        "torch.utils.checkpoint.checkpoint(second, first(x), use_reentrant=True).sum().backward()",
        "x.requires_grad_(True); y = second(first(x)).sum(); slope, = torch.autograd.grad(y, x, create_graph=True); "
        "(slope.sum() + y).backward()",
        "x.requires_grad_(True).register_hook(lambda gradient: gradient * 2); second(first(x)).sum().backward()",
    ],
)
def test_gradients_that_go_into_another_pass_or_a_hook_are_read(run: Run, passes: str) -> None:
    seen = run(f"""
        import torch.utils.checkpoint
        first, second = nn.Linear(32, 32), nn.Linear(32, 2)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

        def step():
            x = torch.randn(16, 32)
            {passes}
            optimizer.step()
            optimizer.zero_grad()
    """)
    assert seen.sums("unread_s") == {}


def test_accumulated_gradients_are_used(run: Run) -> None:
    seen = run("""
        layer = nn.Linear(8, 4)
        optimizer = torch.optim.Adam(layer.parameters())

        def step():
            for _ in range(4):
                layer(torch.randn(4, 8)).square().mean().backward()
            nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    """)
    assert seen.sums("dropped_s") == seen.sums("unheld_s") == {}
    assert set(seen.again()) == {""}
    assert sum(seen.again().values()) == 0


def test_rows_of_a_table_that_are_used(run: Run) -> None:
    seen = run("""
        table = nn.Embedding(1000, 4)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            table(torch.tensor([1, 2, 2, 3])).sum().backward()  # looked up
            optimizer.step()
    """)
    (one,) = seen.flow.tables
    assert (one.num_rows, one.width, one.num, one.used) == (1000, 4, 4, 12)


def test_look_ups_of_one_table_are_one_gradient(run: Run) -> None:
    seen = run("""
        table = nn.Embedding(1000, 4)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad(set_to_none=False)
            first = table(torch.tensor([1, 2]))
            (first + table(torch.tensor([3, 4]))).sum().backward()
            optimizer.step()
    """)
    assert [(one.num_rows, one.num, one.used) for one in seen.flow.tables] == [(1000, 4, 8)] * 2


def test_a_table_that_is_the_output_layer_too_has_dense_gradients_anyway(run: Run) -> None:
    seen = run("""
        table, head = nn.Embedding(1000, 4), nn.Linear(4, 1000)
        head.weight = table.weight
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            head(table(torch.tensor([1, 2, 2, 3]))).logsumexp(1).sum().backward()
            optimizer.step()
    """)
    assert seen.flow.tables == ()


def test_attention_without_dropout_is_told_by_its_arguments(run: Run) -> None:
    seen = run("""
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def attended(x):
            return F.scaled_dot_product_attention(x, x, x).square()

        def step():
            optimizer.zero_grad()
            x = torch.randn(2, 2, 4, 8)
            first = model(attended(x))
            second = attended(x)  # again
            (first.sum() + second.sum()).backward()
            optimizer.step()
    """)
    assert set(seen.sums("repeated_s")) == {"again"}


def test_what_drops_is_random() -> None:
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    x = torch.zeros(1, 1, 2, 4)
    assert not is_unknown(attention, (x, x, x), {})
    assert is_unknown(attention, (x, x, x, 0.1), {})
    assert is_unknown(attention, (x, x, x), {"dropout_p": 0.1})
    assert is_unknown(torch.ops.aten.rand.default, ([2],), {})
