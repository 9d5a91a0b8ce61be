"""fused_recurrence: all time steps in one call, and left where a step needs more than the state of the last one."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from hotloop.model.deep import Deep, HostLine, HostSamples
from hotloop.optimize.catalogue.compute.fused_recurrence import cells as of_torch
from hotloop.optimize.catalogue.compute.fused_recurrence.activation import RecurrentCalls
from hotloop.optimize.catalogue.compute.fused_recurrence.cells import fused
from hotloop.optimize.catalogue.compute.fused_recurrence.one_call import laid_out
from hotloop.optimize.catalogue.compute.fused_recurrence.pattern import time_loops
from hotloop.optimize.catalogue.compute.fused_recurrence.row import FusedRecurrence
from hotloop.optimize.optimization import DoesNotApply
from hotloop.patterns.refusal import NotThis

from . import recurrent_cells as written
from .harness import activate, observation, root

BATCH, TIME, INPUTS, WIDTH = 2, 5, written.INPUTS, written.WIDTH


def run(program: str, cell: Any, activation: RecurrentCalls | None, **given: Any) -> list[torch.Tensor]:
    """Run the function `step` four times; return its results, and the gradients of what it starts from."""
    tree, names = ast.parse(textwrap.dedent(program)), dict[str, Any]()
    if activation is not None:
        activation.on_source("train.py", tree, names)
    torch.manual_seed(0)
    second = nn.LSTMCell(WIDTH, WIDTH)
    x = torch.randn(BATCH, TIME, INPUTS, requires_grad=True)
    h0 = torch.randn(BATCH, WIDTH, requires_grad=True)
    names |= {
        "torch": torch,
        "nn": nn,
        "x": x,
        "h0": h0,
        "TIME": TIME,
        "cell": cell,
        "second": second,
        **given,
    }
    exec(compile(tree, "train.py", "exec"), names)
    results = []
    for _ in range(4):
        result = names["step"]()
        result.square().sum().backward()
        results.append(result.detach())
    learned = [x, h0, *cell.parameters(), *second.parameters()]
    gradients = [each.grad.clone() for each in learned if each.grad is not None]
    cell.zero_grad()
    return results + gradients


LSTM = """
    def step():
        h, c, outputs = h0, torch.zeros_like(h0), []
        for t in range(TIME):
            h, c = cell(x[:, t], (h, c))
            outputs.append(h)
        return torch.stack(outputs, 1).sum(1) + c + t
"""
GRU = """
    def step():
        h, out = h0, torch.zeros(x.size(1), len(x), h0.size(1))
        for t, x_t in enumerate(x.unbind(1)):
            h = cell(x_t, h)
            out[t] = h * 2
        return out.sum(0) + h + x_t.sum()
"""
ACTS = {
    "LSTM": (LSTM, lambda: nn.LSTMCell(INPUTS, WIDTH)),
    "LSTM without bias": (LSTM, lambda: nn.LSTMCell(INPUTS, WIDTH, bias=False)),
    "GRU": (GRU, lambda: nn.GRUCell(INPUTS, WIDTH)),
    "RNN of ReLU": (GRU, lambda: nn.RNNCell(INPUTS, WIDTH, nonlinearity="relu")),
    "an own LSTM": (LSTM, written.TwoLayers),
    "an own LSTM, a layer a gate": (LSTM.replace("(h, c))", "h, c)"), written.JointLayers),
    "an own LSTM of eight layers": (
        """
        def step():
            h, c, wide = h0, torch.zeros_like(h0), torch.cat((x, x[..., :1]), dim=2)
            for t in range(TIME):
                h, c = cell(wide[:, t], (h, c))
            return h + c
        """,
        written.LayerAGate,
    ),
    "an own GRU": (GRU, written.WrittenGRU),
    "an own RNN": (GRU, written.Elman),
    "an output that is changed behind the loop": (
        """
        def step():
            h, c, outputs = h0, torch.zeros_like(h0), []
            for t in range(TIME):
                h, c = cell(x[:, t], (h, c))
                outputs.append(h)
            outputs[-1][:, 0] += 1.0
            h.mul_(2)  # which is the last of the outputs
            return torch.stack(outputs, 1).sum(1) * h + c
        """,
        written.TwoLayers,
    ),
    "several cells, time first, fewer steps": (
        """
        def step():
            h, c, outputs, seq = h0, h0, [], x.transpose(0, 1)
            state = (h0, torch.zeros_like(h0))
            for i in range(len(seq) - 1):
                now = seq[i]
                h, c = cell(now, (h, c))
                state = second(h, state)
                outputs += [state[0] + h]
            return torch.stack(outputs).sum(0) + c + state[0] * state[1] + now.mean()
        """,
        lambda: nn.LSTMCell(INPUTS, WIDTH),
    ),
    "a state that begins as None": (
        """
        def step():
            h, rows = None, x.transpose(0, 1)
            for row in rows.unbind():
                h = cell(row, h)
            return h
        """,
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "in a module": (
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = nn.ModuleList([cell])
            def forward(self, sequence, h):
                outputs = []
                for t in range(sequence.shape[1]):
                    h = self.cells[0](sequence[:, t, :], h)
                    if t % 2:
                        outputs.append(torch.tanh(h))
                return torch.stack(outputs).sum(0)
        model = Model()
        def step():
            return model(x, h0)
        """,
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
}


@pytest.mark.parametrize(("program", "make"), ACTS.values(), ids=ACTS)
def test_it_computes_the_same_in_one_call(program: str, make: Any) -> None:
    torch.manual_seed(1)
    cell, activation = make(), RecurrentCalls(at_once=True)
    plain = run(program, cell, None)
    for one, other in zip(plain, run(program, cell, activation), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    on, evidence = activation.effect()
    assert on, evidence
    assert "2x (" in evidence  # of the four runs, the first two are the loop's own


LEFT = {
    "another cell": ("computes something else", GRU, written.FirstGRU),
    "dropout": ("draws random numbers", GRU, written.WithDropout),
    "normalization": ("has a LayerNorm in it", GRU, written.Normalized),
    "a cell that counts": ("does more than compute", GRU, written.Counting),
    "an LSTM's inner state": (
        "c, which one call gives for the last step alone",
        LSTM.replace("append(h)", "append(h + c)"),
        lambda: nn.LSTMCell(INPUTS, WIDTH),
    ),
    "more of the state than its first part": (
        "more of its state than state[0]",
        """
        def step():
            state, outputs = (h0, h0), []
            for t in range(TIME):
                state = cell(x[:, t], state)
                outputs.append(sum(state))
            return torch.stack(outputs).sum(0)
        """,
        lambda: nn.LSTMCell(INPUTS, WIDTH),
    ),
    "a mask": (
        "h is changed in the loop",
        GRU.replace("out[t] = h * 2", "h = h * (x_t.sum(1, keepdim=True) > 0)"),
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "a decoder": (
        "does not go over a tensor's time steps",
        """
        def step():
            h, previous = h0, x[:, 0]
            for t in range(TIME):
                h = cell(previous, h)
                previous = h[:, :3]
            return h
        """,
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "an early end": (
        "it may end early",
        GRU.replace("out[t] = h * 2", "if t == 3: break"),
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "a row that is named behind the cell": (
        "is made in the loop",
        """
        def step():
            h, x_t = h0, x[:, 0]
            for t in range(TIME):
                h = cell(x_t, h)
                x_t = x[:, t]
            return h
        """,
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "a list": (
        "it goes over a list",
        """
        def step():
            h, rows = h0, list(x.unbind(1))
            for row in rows:
                h = cell(row, h)
            return h
        """,
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
    "backwards": (
        "does not go over a tensor's time steps",
        GRU.replace("enumerate(x.unbind(1))", "reversed(list(enumerate(x.unbind(1))))"),
        lambda: nn.GRUCell(INPUTS, WIDTH),
    ),
}


@pytest.mark.parametrize(("reason", "program", "make"), LEFT.values(), ids=LEFT)
def test_other_loops_run_as_they_are(reason: str, program: str, make: Any) -> None:
    torch.manual_seed(1)
    cell, activation = make(), RecurrentCalls(at_once=True)
    plain = run(program, cell, None)
    for one, other in zip(plain, run(program, cell, activation), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    on, evidence = activation.effect()
    assert not on
    assert reason in evidence


def test_a_hook_on_the_cell_is_heard() -> None:
    cell, heard = nn.GRUCell(INPUTS, WIDTH), list[int]()
    cell.register_forward_hook(lambda *_: heard.append(1))
    activation = RecurrentCalls(at_once=True)
    run(GRU, cell, activation)
    assert len(heard) == 4 * TIME
    assert "there are hooks on its GRUCell" in activation.effect()[1]


def test_a_call_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = of_torch._own
    monkeypatch.setattr(of_torch, "_own", lambda cell: [own(cell)[0], own(cell)[1] * 1.01, *own(cell)[2:]])
    activation = RecurrentCalls(at_once=True)
    run(GRU, nn.GRUCell(INPUTS, WIDTH), activation)
    on, evidence = activation.effect()
    assert not on
    assert "its results differ" in evidence


def test_gradients_that_go_elsewhere_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = of_torch._own
    monkeypatch.setattr(of_torch, "_own", lambda cell: [each.detach() for each in own(cell)])
    activation = RecurrentCalls(at_once=True)
    run(GRU, nn.GRUCell(INPUTS, WIDTH), activation)
    assert "its gradients go elsewhere" in activation.effect()[1]


def test_each_mode_is_proven_by_itself() -> None:
    """A cell that drops nothing while it is evaluated is another one when it is trained."""
    cell, activation = written.WithDropout().eval(), RecurrentCalls(at_once=True)
    torch.manual_seed(1)
    run(GRU, cell, activation)
    assert activation.effect()[0]
    cell.train()
    names: dict[str, Any] = {"torch": torch, "x": torch.randn(2, 5, 3), "h0": torch.zeros(2, 4), "cell": cell}
    tree = ast.parse(textwrap.dedent(GRU))
    activation.on_source("train.py", tree, names)
    exec(compile(tree, "train.py", "exec"), names)
    assert not torch.equal(names["step"](), names["step"]()), "dropout is still drawn"
    assert "differ" in activation.effect()[1]


@pytest.mark.parametrize("make", [lambda: nn.LSTMCell(INPUTS, WIDTH), written.TwoLayers])
def test_under_autocast(make: Any) -> None:
    """Gates are rounded to bfloat16 one by one there, or not at all."""
    program = (
        LSTM.replace("def step():", "def whole():")
        + """
    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return whole()
    """
    )
    cell, activation = make(), RecurrentCalls(at_once=True)
    plain = run(program, cell, None)
    for one, other in zip(plain, run(program, cell, activation), strict=True):
        assert one.dtype is other.dtype
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.05)
    assert activation.effect()[0], activation.effect()


DEVICE_LOOP = """
    def last(x, state):
        for t in range(x.size(1)):
            state = cell(x[:, t], state)
        return state
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.filterwarnings("error:RNN module weights")
@pytest.mark.parametrize("make", [lambda: nn.LSTMCell(INPUTS, WIDTH), written.WrittenGRU])
def test_on_a_device(make: Any) -> None:
    """With cuDNN, which would warn of weights that do not lie behind one another."""
    cell, activation = make().cuda(), RecurrentCalls(at_once=True)
    tree, names = ast.parse(textwrap.dedent(DEVICE_LOOP)), dict[str, Any](torch=torch, cell=cell)
    activation.on_source("train.py", tree, names)
    exec(compile(tree, "train.py", "exec"), names)
    x = torch.randn(BATCH, TIME, INPUTS, device="cuda")
    h = torch.zeros(BATCH, WIDTH, device="cuda")
    state = (h, h) if isinstance(cell, nn.LSTMCell) else h
    results = [names["last"](x, state) for _ in range(4)]
    torch.testing.assert_close(results[0], results[3], rtol=1e-3, atol=1e-3)
    assert activation.effect()[0], activation.effect()


CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
def once(x, h):
    for t in range(x.size(1)):
        h = cell(x[:, t], h)
    return h
def both(x, h):
    return once(x, h) + once(x * 2, h)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = cell
    def forward(self, x, h):
        return checkpoint(both, x, h, use_reentrant=False)
model = Model()
def step():
    return model(x, h0)
"""


def test_within_a_checkpointed_block() -> None:
    """The loop runs twice a forward, so that it is proven before the block's second forward begins."""
    cell, activation = nn.GRUCell(INPUTS, WIDTH), RecurrentCalls(at_once=True)
    plain = run(CHECKPOINTED, cell, None)
    program = CHECKPOINTED.replace("model = Model()", "model = Model()\nhook(model)")

    def hook(model: nn.Module) -> None:
        activate(activation, model)

    for one, other in zip(plain, run(program, cell, activation, hook=hook), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert activation.effect()[0], activation.effect()


def test_it_goes_on_and_off_in_a_running_program() -> None:
    activation, cell = RecurrentCalls(at_once=False), nn.GRUCell(INPUTS, WIDTH)
    run(GRU, cell, activation)
    assert not activation.effect()[0]
    names: dict[str, Any] = {"torch": torch, "x": torch.randn(2, 5, 3), "h0": torch.zeros(2, 4), "cell": cell}
    tree = ast.parse(textwrap.dedent(GRU))
    activation.on_source("train.py", tree, names)
    exec(compile(tree, "train.py", "exec"), names)
    plain = [names["step"]() for _ in range(3)][-1]
    activation.switch(True)
    torch.testing.assert_close(names["step"](), plain)
    assert "1x (gru)" in activation.effect()[1]


def test_weights_lie_behind_one_another_where_cudnn_wants_them_so() -> None:
    cell = nn.LSTMCell(INPUTS, WIDTH)
    weights = of_torch._own(cell)
    parts = laid_out(weights, torch.device("cuda"))
    assert all(torch.equal(one, other) for one, other in zip(weights, parts, strict=True))
    ends = [part.data_ptr() + part.numel() * part.element_size() for part in parts]
    assert ends[:-1] == [part.data_ptr() for part in parts[1:]]
    torch.autograd.grad(parts[0].sum(), cell.weight_ih)


def test_a_layer_is_no_cell() -> None:
    with pytest.raises(NotThis, match="Linear is no recurrent cell"):
        fused(nn.Linear(3, 3))


def test_candidates_are_programs_with_such_a_loop(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(textwrap.dedent(LSTM))
    seen = observation(roots=(root(code_files=(str(path),)),))
    assert FusedRecurrence().candidates(seen)[0].prior > 1

    def with_share(share: float) -> Any:
        line = HostLine(
            path=str(path),
            line=5,
            function="step",
            process="train",
            phase="forward",
            share=share,
            spent_s=1,
            num=9,
        )
        host = HostSamples(num_steps=9, window_s=1.0, interval_s=0.01, lines=(line,), frames=(), samples=())
        return msgspec.structs.replace(seen, deep=Deep(host=host))

    assert FusedRecurrence().candidates(with_share(0.4))[0].prior == pytest.approx(1 / (1 - 0.8 + 0.8 / 1.5))
    with pytest.raises(DoesNotApply, match=r"0\.1% of the step"):
        FusedRecurrence().candidates(with_share(0.001))
    compiled = observation(roots=(root(code_files=(str(path),), compiled=True),))
    with pytest.raises(DoesNotApply, match="compiles its model"):
        FusedRecurrence().candidates(compiled)
    twice = observation(roots=(root(code_files=(str(path),)),), double_backward=True)
    with pytest.raises(DoesNotApply, match="differentiates a gradient"):
        FusedRecurrence().candidates(twice)
    path.write_text("x = 1\n")
    with pytest.raises(DoesNotApply, match="no loop of the program calls a recurrent cell"):
        FusedRecurrence().candidates(seen)


@pytest.mark.parametrize(
    "program", ["for t in range(3):\n    h = f(x[t])", "for a in b:\n    a, b = g(a, b)"]
)
def test_loops_that_hand_nothing_on_are_not_named(program: str) -> None:
    loops, left = time_loops(ast.parse(program))
    assert not loops
    assert not left
