"""Things that real programs do to hooks. Each case returns what the program sees; it must be the same with the probe.

Run as a program: `python hazard_cases.py RESULTS_JSON FOLDER`. Cases run in this order, in one process.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import inspect
import io
import json
import pickle
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from torch.utils.data.sampler import Sampler

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()
CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, pixels: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return self.second(torch.relu(self.first(pixels * scale)))


def data(num: int = 64) -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    return TensorDataset(
        torch.randn(num, 8, generator=generator), torch.randint(0, 4, (num,), generator=generator)
    )


def train(model: nn.Module, steps: int = 6, **loader_keywords: Any) -> list[str]:
    """Train and return the exact losses."""
    loader = DataLoader(data(), batch_size=8, shuffle=True, **loader_keywords)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses: list[str] = []
    while len(losses) < steps:
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
            if len(losses) == steps:
                break
    return losses


def trained(steps: int = 6) -> Net:
    torch.manual_seed(0)
    model = Net()
    train(model, steps)
    return model


@case
def losses_are_bit_identical() -> Any:
    torch.manual_seed(3)
    return [train(Net(), 20), torch.rand(1).item(), train(Net(), 12, num_workers=1)]


@case
def a_whole_model_is_saved() -> Any:
    model = trained()
    torch.save(model, FOLDER / "whole.pt")
    torch.save(model.state_dict(), FOLDER / "state.pt")
    return [
        sorted(model.state_dict()),
        [name for name, _ in model.named_children()],
        "forward" in model.__dict__,
    ]


@case
def a_model_that_pickles_its_attributes_itself() -> Any:
    model = Stubborn()
    train(model, 4)
    return [type(pickle.loads(pickle.dumps(model))).__name__, copy.deepcopy(model)(torch.ones(1, 8)).shape[1]]


class Stubborn(Net):
    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


@case
def a_deepcopy_in_mid_episode() -> Any:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results = []
    for _ in range(5):
        loss = model(torch.ones(2, 8)).sum()
        target = copy.deepcopy(model)
        shallow = copy.copy(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            results.append([target(torch.ones(1, 8)).sum().item(), shallow(torch.ones(1, 8)).sum().item()])
    return results


@case
def signatures() -> Any:
    model = trained()
    return [
        str(inspect.signature(thing))
        for thing in (
            model.forward,
            torch.optim.AdamW,
            torch.optim.SGD,
            torch.optim.Optimizer,
            torch.utils.data.DataLoader,
            torch.save,
            torch.autograd.backward,
            torch.autograd.grad,
            torch.compile,
            torch.distributed.all_reduce,
            nn.Module.__call__,
            torch.Tensor.backward,
        )
    ]


@case
def schedulers_made_after_steps() -> Any:
    model = trained()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    rates = []
    with warnings.catch_warnings(record=True) as caught:
        for _ in range(3):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr()[0])
    return [rates, [str(warning.message)[:80] for warning in caught]]


@case
def a_grad_scaler_on_the_cpu() -> Any:
    torch.manual_seed(0)
    model, scaler = Net(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(2, 8)).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item().hex())
    return losses


@case
def a_gradient_penalty() -> Any:
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(critic.parameters())
    values = []
    for _ in range(4):
        inputs = torch.randn(4, 8, requires_grad=True)
        score = critic(inputs)
        (gradient,) = torch.autograd.grad(score.sum(), inputs, create_graph=True)
        loss = score.mean() + (gradient.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item().hex())
    return values


@case
def lbfgs() -> Any:
    torch.manual_seed(0)
    model = Net()
    inputs, optimizer = torch.randn(16, 8), torch.optim.LBFGS(model.parameters(), max_iter=5)
    calls = 0

    def closure() -> torch.Tensor:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        return loss

    return [[float(optimizer.step(closure)).hex() for _ in range(4)], calls]


@case
def lazy_parameters() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(4))
    with torch.no_grad():
        shape = tuple(model(torch.ones(2, 8)).shape)
    return [shape, train(model, 3)]


@case
def an_absurd_length() -> Any:
    class Endless(Sampler[int]):
        def __iter__(self) -> Any:
            return iter(range(10**10))

        def __len__(self) -> int:
            return 10**10

    class Broken(IterableDataset[torch.Tensor]):
        def __iter__(self) -> Any:
            return iter(torch.ones(6, 8))

        def __len__(self) -> int:
            raise RuntimeError("how should I know")

    class Numbers(Dataset[torch.Tensor]):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.full((8,), float(index))

        def __len__(self) -> int:
            return 10**10

    loader = DataLoader(Numbers(), batch_size=4, sampler=Endless())
    first = next(iter(loader))
    broken = [tuple(batch.shape) for batch in DataLoader(Broken(), batch_size=4)]
    return [len(loader), first.sum().item(), broken]


@case
def loaders_made_anew() -> Any:
    torch.manual_seed(0)
    sums = []
    for _ in range(5):
        loader = DataLoader(data(), batch_size=16, shuffle=True)
        sums.append([batch.sum().item() for batch, _ in loader])
    sums.append([next(iter(loader))[0].sum().item() for _ in range(3)])
    return sums


@case
def attributes_of_a_loader() -> Any:
    """Lightning and Fabric build a loader anew from the attributes and the signature of the old one."""
    loader = DataLoader(data(), batch_size=4)
    public = sorted(name for name in vars(loader) if not name.startswith("_"))
    return [public, list(inspect.signature(type(loader).__init__).parameters)]


@case
def tied_weights() -> Any:
    torch.manual_seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(10, 8), "head": nn.Linear(8, 10, bias=False)})
    model["head"].weight = model["embed"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(4):
        loss = functional.cross_entropy(model["head"](model["embed"](torch.arange(5))), torch.arange(5))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return [losses, model["head"].weight is model["embed"].weight, len(list(model.parameters()))]


@case
def activation_checkpointing() -> Any:
    from torch.utils.checkpoint import checkpoint

    results = []
    for reentrant in (True, False):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            inputs = torch.randn(4, 8, requires_grad=True)
            loss = checkpoint(model, inputs, use_reentrant=reentrant).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            results.append(loss.item().hex())
    return results


@case
def training_in_threads() -> Any:
    results: dict[int, list[str]] = {}

    def work(number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        model = Net()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            loss = model(torch.randn(4, 8, generator=generator)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
        results[number] = losses

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(3)]


@case
def functorch() -> Any:
    from torch.func import functional_call, grad, stack_module_state, vmap

    torch.manual_seed(0)
    models = [trained() for _ in range(2)]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    base = copy.deepcopy(models[0]).to("meta")

    def call(parameters: Any, buffers: Any, inputs: torch.Tensor) -> torch.Tensor:
        return functional_call(base, (parameters, buffers), (inputs,))

    outputs = vmap(call, in_dims=(0, 0, None))(parameters, buffers, torch.ones(3, 8))
    own = dict(models[0].named_parameters())
    gradient = grad(lambda p: functional_call(models[0], p, (torch.ones(1, 8),)).sum())(own)
    return [outputs.sum().item().hex(), float(gradient["second.bias"].sum())]


@case
def data_parallel() -> Any:
    model = nn.DataParallel(trained())
    return [train(model, 3), sorted(model.state_dict())]


@case
def replicas_call_themselves() -> Any:
    model = trained()
    replica = model._replicate_for_data_parallel()
    replica.forward = lambda inputs: "the replica"
    return str(replica(torch.ones(1, 8)))


@case
def scripting_and_tracing() -> Any:
    model = trained()
    scripted = torch.jit.script(model)
    traced = torch.jit.trace(model, torch.ones(2, 8))
    frozen = torch.jit.freeze(scripted.eval())
    return [thing(torch.ones(2, 8)).sum().item().hex() for thing in (scripted, traced, frozen)]


@case
def export_and_fx() -> Any:
    model = trained()
    graph = torch.fx.symbolic_trace(model)
    exported = torch.export.export(model, (torch.ones(2, 8),))
    return [
        [node.name for node in graph.graph.nodes],
        [node.name for node in exported.graph.nodes],
        exported.module()(torch.ones(2, 8)).sum().item().hex(),
    ]


@case
def a_model_for_every_fold_is_freed() -> Any:
    freed = []
    losses = []
    for fold in range(3):
        torch.manual_seed(fold)
        model = Net()
        losses.append(train(model, 4))
        gone = weakref.ref(model)
        del model
        freed.append(gone() is None)
    return [losses, freed]


@case
def an_optimizer_is_freed() -> Any:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    return gone() is None


@case
def errors_of_the_program_stay_its_own() -> Any:
    model, errors = trained(), []

    class Bad(Dataset[int]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            raise KeyError("no such sample")

    def closure() -> float:
        raise ZeroDivisionError("closure")

    attempts: list[Callable[[], Any]] = [
        lambda: model(torch.ones(1, 9)),
        lambda: next(iter(DataLoader(Bad()))),
        lambda: torch.ones(1).backward(),
        lambda: torch.optim.SGD(model.parameters(), lr=-1),
        lambda: torch.optim.LBFGS(model.parameters()).step(closure),
        lambda: DataLoader(data(), batch_size=0),
        lambda: torch.save(model, "/no/such/folder/model.pt"),
    ]
    for attempt in attempts:
        try:
            attempt()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {str(error)[:60]}")
    return [errors, train(model, 3)]


@case
def interrupts_pass_through() -> Any:
    class Interrupting(Net):
        def forward(self, pixels: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            raise KeyboardInterrupt

    caught = 0
    for _ in range(2):
        try:
            train(Interrupting(), 1)
        except KeyboardInterrupt:
            caught += 1
    return [caught, train(trained(), 2)]


@case
def a_stack_no_deeper_in_the_loader() -> Any:
    """Frames above the dataset: anomaly mode and profilers get slower with each; the loader's hook adds one."""

    class Deep(Dataset[int]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            names = [frame.function for frame in inspect.stack()]
            return sum(1 for name in names if name == "__next__") <= 2

    return bool(next(iter(DataLoader(Deep())))[0])


@case
def own_excepthook_and_modules() -> Any:
    names = sorted(
        name for name in sys.modules if name.split(".")[0] in {"config", "probe", "recorder", "events"}
    )
    return [sys.excepthook is sys.__excepthook__, names]


def _counted(function: Callable[[], Any]) -> Any:
    """Return the result, torch.compile's own counts of graphs and breaks, and what it warned about."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    stats = {name: dict(counters[name]) for name in ("stats", "graph_break")}
    return [result, stats, [str(warning.message)[:60] for warning in caught]]


@case
def compile_before_the_first_call() -> Any:
    torch.manual_seed(0)
    model = Net()
    return _counted(lambda: train(torch.compile(model, backend="eager"), 6))


@case
def compile_after_some_steps() -> Any:
    torch.manual_seed(0)
    model = Net()
    train(model, 4)
    compiled = torch.compile(model, backend="aot_eager")
    result = _counted(lambda: train(compiled, 4))
    return [result, train(model, 2), sorted(compiled.state_dict())]


@case
def compile_in_place() -> Any:
    torch.manual_seed(0)
    model = Net()

    def work() -> Any:
        model.compile(backend="eager")
        return train(model, 6)

    result = _counted(work)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return [result, sorted(torch.load(buffer, weights_only=True)), len(list(model.children()))]


@case
def compile_a_function() -> Any:
    torch.manual_seed(0)
    model = Net()
    train(model, 4)

    @torch.compile(backend="eager")
    def objective(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(inputs), labels)

    def work() -> list[str]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for inputs, labels in DataLoader(data(), batch_size=8):
            optimizer.zero_grad()
            loss = objective(inputs, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
        return losses

    return _counted(work)


@case
def compile_a_whole_step() -> Any:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step(inputs: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return _counted(lambda: [step(torch.ones(4, 8)).item().hex() for _ in range(5)])


@case
def compile_the_blocks_of_a_model() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager") for _ in range(3))
    )
    return _counted(lambda: train(model, 5))


def main() -> None:
    results: dict[str, Any] = {}
    for name, function in CASES.items():
        # Names that count (case_1, ...) differ between runs if anything was left behind by an earlier case.
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                results[name] = {"value": function()}
            except BaseException:
                results[name] = {"error": traceback.format_exc()}
    Path(sys.argv[1]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
