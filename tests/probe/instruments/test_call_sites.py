"""Which lines wait, copy and create: programs whose truth stands in their comments."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from hotloop.probe.instruments.call_sites import CallSites
from hotloop.probe.probe import Probe
from hotloop.probe.record.call_site import installed_in
from hotloop.probe.windows.profiling_windows import hide_from_dynamo

from .conftest import Watch

PLAIN = """
    import io
    import logging
    import torch
    logger = logging.getLogger("program")
    logger.handlers = [logging.StreamHandler(io.StringIO())]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    class Meter:
        def __init__(self):
            self.total = 0.0
        def update(self, value):
            self.total += float(value)  # sync
    meter = Meter()
    def hit_rate(scores, labels):
        right = scores.argmax(1) == labels
        return right.sum().item()  # sync
    def describe(loss):
        return f"loss {loss:.3f}"  # sync
    def keep(values):
        return values[values > 0]  # sync
    scores, labels = torch.randn(8, 4), torch.randint(0, 4, (8,))
    def step():
        loss = scores.square().mean()
        hit_rate(scores, labels)
        meter.update(loss)
        logger.info("now %s", loss)  # sync
        describe(loss)
        if loss > 0:  # sync
            loss = loss * 2
        keep(scores)
        history = loss.cpu()  # sync
        where = (labels == 0).nonzero()  # sync
        return scores[0], scores[labels], scores[:, 1:2], history, where
"""

OTHER_FORMS = """
    import math
    import numpy
    import torch
    x = torch.randn(6, requires_grad=True)
    lengths = torch.tensor([3, 1, 2])
    mask = torch.tensor([True, False, True, True, False, False])
    rows = [10, 20, 30, 40]
    def worst(values):
        return max(values, key=lambda value: value)  # sync
    def step():
        detached = x.detach()
        detached.tolist()  # sync
        detached.numpy()  # sync
        numpy.asarray(detached)  # sync
        int(lengths.max())  # sync
        math.sqrt(detached.square().sum())  # sync
        for n in range(lengths[0]):  # sync
            pass
        rows[lengths[1]]  # sync
        worst([detached[0], detached[1]])
        assert not torch.isnan(detached).any()  # sync
        while detached.sum() > 1000:  # sync
            break
        torch.masked_select(detached, mask)  # sync
        torch.unique(lengths)  # sync
        torch.where(mask)  # sync
        torch.where(mask, detached, 0.0)
        torch.equal(lengths, lengths)  # sync
        torch.allclose(detached, detached)  # sync
        torch.repeat_interleave(detached[:3], lengths)  # sync
        torch.repeat_interleave(detached, 2)
        torch.nn.functional.one_hot(lengths)  # sync
        torch.nn.functional.one_hot(lengths, 5)
        3 in lengths  # sync
        detached[mask] = 0.0
        detached[mask] = torch.zeros(3)  # sync
        str(detached)  # sync
        repr(detached)  # sync
        "{}".format(lengths[0])  # sync
        list(map(float, detached))  # sync
"""

ORDINARY = """
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizers = [
        torch.optim.AdamW(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        torch.optim.RMSprop(model.parameters()), torch.optim.Adagrad(model.parameters()),
    ]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizers[1], max_lr=0.1, total_steps=100)
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return x[index], int(y[index])
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, shuffle=True)
    def step():
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.to("cpu")), labels)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
            schedule.step()
"""

MADE = """
    import torch
    from torch import ones, tensor as make
    recurrent = torch.nn.LSTM(4, 4)
    x = torch.randn(4, 4)
    def step():
        a = torch.zeros(4, 4)  # create
        b = ones(2)  # create
        c = make([1.0, 2.0])  # create
        d = torch.arange(3)  # create
        e = x.new_zeros(2)  # create
        f = torch.rand_like(x)  # create
        g = x.to(torch.float64)  # copy
        h = x.to("cpu")  # copy
        x.clone().requires_grad_().sum().backward()
        recurrent(x)
        return x + a, b, c, d, e, f, g, h
"""


@pytest.mark.parametrize("program", [PLAIN, OTHER_FORMS])
def test_every_line_that_waits_is_found_and_no_other(watch: Watch, program: str) -> None:
    seen = watch(program)
    assert seen.lines("sync") == seen.marked("sync")


def test_an_ordinary_step_has_none(watch: Watch) -> None:
    assert watch(ORDINARY).lines("sync") == set()


def test_new_tensors_and_copies(watch: Watch) -> None:
    seen = watch(MADE)
    assert seen.lines("create") == seen.marked("create"), "imported names too"
    assert seen.lines("copy") == seen.marked("copy")
    sizes = {seen.value["keys"][number][1]: size for number, _, _, size in seen.value["steps"][0]}
    first = min(seen.marked("create"))
    assert sizes[first] == 64
    float64, nothing = sorted(seen.marked("copy"))
    assert (sizes[float64], sizes[nothing]) == (128, 0)


def test_calls_are_counted_by_step_and_timed(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        x = torch.arange(5.0)
        def step():
            return [value.item() for value in x]
        """,
        num_steps=3,
    )
    assert seen.counts() == {(5, ".item()"): 5}
    assert len(seen.value["steps"]) == 3
    assert all(spent > 0 for rows in seen.value["steps"] for _, _, spent, _ in rows)


def test_what_is_called_inside_belongs_to_the_outer_call(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        x = torch.arange(5.0)
        def step():
            print(x, file=__import__("io").StringIO())
        """
    )
    assert seen.counts() == {(5, "print(tensor)"): 1}


def test_a_call_in_a_backward_is_seen(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        class Clipped(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                scale = grad.abs().max().item()  # sync
                return grad / scale
        x = torch.randn(4, requires_grad=True)
        def step():
            Clipped.apply(x).sum().backward()
        """
    )
    assert seen.lines("sync") == seen.marked("sync")


def test_a_library_names_the_line_of_the_user_and_its_own(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        logits = torch.randn(4, 3)
        def step():
            return torch.distributions.Categorical(logits=logits, validate_args=True)  # sync
        """
    )
    assert seen.lines("sync") == seen.marked("sync")
    assert all("distributions" in key[6] for key in seen.value["keys"] if key[4] == "sync")


def test_parameters_and_subclasses(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        class Tagged(torch.Tensor):
            pass
        weight = torch.nn.Parameter(torch.ones(1))
        tagged = torch.ones(1).as_subclass(Tagged)
        def step():
            weight.item()  # sync
            tagged.item()  # sync
            return bool(weight > 0)  # sync
        """
    )
    assert seen.lines("sync") == seen.marked("sync")


def test_the_result_and_the_error_are_torchs_own(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        def step():
            assert torch.tensor([1, 2]).tolist() == [1, 2]
            assert torch.arange(4)[torch.tensor([True, False, True, False])].equal(torch.tensor([0, 2]))
            try:
                bool(torch.ones(2))
            except RuntimeError as error:
                assert "ambiguous" in str(error)
            else:
                raise AssertionError
        """
    )
    assert len(seen.value["steps"]) == 1, "the program's own assertions held"


def test_torch_is_as_before_afterwards(watch: Watch) -> None:
    before = dict(vars(torch.Tensor)), dict(vars(torch)), dict(vars(nn.functional))
    seen = watch(MADE)
    assert (dict(vars(torch.Tensor)), dict(vars(torch)), dict(vars(nn.functional))) == before
    assert seen.value["keys"]
    with torch.device("meta"):
        assert torch.zeros(2).device.type == "meta", "the table of a default device was made of torch's own"


def test_calls_of_other_threads_are_seen(watch: Watch) -> None:
    seen = watch(
        """
        import threading
        import torch
        x = torch.ones(1)
        def report():
            x.item()  # sync
        def step():
            thread = threading.Thread(target=report)
            thread.start()
            thread.join()
        """
    )
    assert seen.lines("sync") == seen.marked("sync")


def test_a_function_of_torch_can_be_pickled_meanwhile(watch: Watch) -> None:
    seen = watch(
        """
        import pickle
        import torch
        def step():
            assert pickle.loads(pickle.dumps(torch.zeros)) is torch.zeros
        """
    )
    assert len(seen.value["steps"]) == 1, "the program's own assertion held"


def test_compiled_code_is_not_compiled_again(probe: Probe) -> None:
    compiled = []

    def backend(graph, inputs):  # type: ignore[no-untyped-def]
        compiled.append(graph)
        return graph.forward

    @torch.compile(backend=backend)
    def scaled(x: torch.Tensor) -> torch.Tensor:
        y = x.to(torch.float64) + torch.zeros(3) + torch.arange(3)
        return y[0] * float(x.sum())

    hide_from_dynamo()
    x = torch.randn(3)
    expected = scaled(x)
    before = len(compiled)
    instrument = CallSites(probe)
    instrument.start()
    try:
        assert torch.equal(scaled(x), expected)
        instrument.step()
    finally:
        value = instrument.stop()
    scaled(x)
    assert len(compiled) == before
    assert not value["functions"]


def test_packages_installed_in_any_folder_are_no_code_of_the_user_s(tmp_path: Path) -> None:
    own, target = tmp_path / "project", tmp_path / "packages"
    (own / "model").mkdir(parents=True)
    (target / "timm-1.0.dist-info").mkdir(parents=True)
    found = installed_in([str(own), str(target), str(tmp_path / "missing"), ""])
    assert found == {str(target)}


def test_a_number_in_a_tensor_is_no_mask(watch: Watch) -> None:
    seen = watch(
        """
        import torch
        weights, label, mask = torch.rand(4), torch.tensor(2), torch.tensor([True, False, True, True])
        def step():
            weights[label]  # number
            weights[mask]  # mask
            weights[torch.tensor([1, 2])]
        """
    )
    named = {(line, call) for line, call in seen.counts() if call.startswith("tensor[")}
    (number,), (mask,) = seen.marked("number"), seen.marked("mask")
    assert named == {(number, "tensor[number in a tensor]"), (mask, "tensor[mask]")}
