"""Code that reads a program instead of running it, or that looks at its callers: it must find the same with us.

Run as a program: `python reader_cases.py ROOT RESULTS_JSON FOLDER`. Each case returns two things: what must be the same
whatever is switched on, and what must be the same to the last line and digit where the program is only observed.
Every reader reads the model before its first training forward, in the middle of training, and after it.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import io
import json
import logging
import os
import pickle
import pickletools
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

ROOT, RESULTS, FOLDER = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
Found = tuple[Any, Any]
READERS: dict[str, Callable[[nn.Module, Any], Found]] = {}
STACKS: dict[str, list[Any]] = {}


def reader(function: Callable[[nn.Module, Any], Found]) -> Callable[[nn.Module, Any], Found]:
    READERS[function.__name__] = function
    return function


def note_stack(where: str) -> None:
    """Keep who is on the stack, the first four times."""
    seen = STACKS.setdefault(where, [])
    if len(seen) < 4:
        frames = inspect.stack(context=0)[1:]
        own = [each.lineno if each.filename == __file__ else 0 for each in frames]
        names = [(os.path.basename(each.filename), each.function) for each in frames]
        seen.append(list(zip(names, own, strict=True)))


# The program ------------------------------------------------------------------------------------------------------


class Bend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        note_stack("backward")
        return gradients[0] * 0.5


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(pixels)))


class Looking(Plain):
    """The model that trains: the readers get a plain one, whose hook is as much there."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        note_stack("forward")
        for level in range(1, 7):
            warnings.warn(f"level {level}", UserWarning, stacklevel=level)
        return Bend.apply(super().forward(pixels))

    def __getstate__(self) -> Any:
        note_stack("getstate")
        return super().__getstate__()


class Rows(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        note_stack("getitem")
        generator = torch.Generator().manual_seed(index)
        return torch.randn(8, generator=generator), index % 4

    def __len__(self) -> int:
        return 48


def collate(rows: Any) -> Any:
    note_stack("collate")
    return default_collate(rows)


class Descent(torch.optim.SGD):
    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.05)

    def add_param_group(self, group: Any) -> None:
        note_stack("add_param_group")
        super().add_param_group(group)

    def step(self, closure: Any = None) -> Any:
        note_stack("step")
        return super().step(closure)


class Emits(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note_stack("emit")
        STACKS.setdefault("logged", []).append(
            (os.path.basename(record.pathname), record.lineno, record.funcName)
        )


def train_plain(model: nn.Module, between: Callable[[], None]) -> None:
    optimizer = Descent(model.parameters())
    logger = logging.getLogger("program")
    for epoch in range(2):
        for step, (inputs, labels) in enumerate(DataLoader(Rows(), batch_size=8, collate_fn=collate)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            logger.warning("loss %s", "x")
            if (epoch, step) == (1, 2):
                between()
        torch.save(model, FOLDER / "whole.pt")


def train_lightning(model: Any, between: Callable[[], None]) -> None:
    import lightning

    class Between(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *args: Any, **kwargs: Any) -> None:
            if trainer.global_step == 8:
                between()

    trainer = lightning.Trainer(
        max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[Between()],
        enable_model_summary=False, accelerator="cpu",
    )  # fmt: skip
    trainer.fit(model, DataLoader(Rows(), batch_size=8, collate_fn=collate))


def train_hugging_face(model: Any, between: Callable[[], None]) -> None:
    import transformers

    class Between(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 8:
                between()

    class Words(Dataset[Any]):
        def __getitem__(self, index: int) -> Any:
            note_stack("getitem")
            ids = torch.arange(8).add(index).remainder(32)
            return {"input_ids": ids, "labels": ids}

        def __len__(self) -> int:
            return 48

    arguments = transformers.TrainingArguments(
        output_dir=str(FOLDER / "out"), max_steps=12, per_device_train_batch_size=8, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    transformers.Trainer(model=model, args=arguments, train_dataset=Words(), callbacks=[Between()]).train()


def made() -> tuple[Any, Any, Callable[[Any, Callable[[], None]], None]]:
    """Return the model, inputs for it, and what trains it."""
    torch.manual_seed(0)
    if ROOT == "plain":
        return Plain(), torch.ones(2, 8), train_plain
    if ROOT == "lightning":
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.net = Plain()

            def forward(self, pixels: torch.Tensor) -> torch.Tensor:
                return self.net(pixels)

            def training_step(self, batch: Any, index: int) -> torch.Tensor:
                return nn.functional.cross_entropy(self(batch[0]), batch[1])

            def configure_optimizers(self) -> Any:
                return Descent(self.parameters())

        return Module(), torch.ones(2, 8), train_lightning
    import transformers

    config = transformers.GPT2Config(
        vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config), torch.ones(2, 8, dtype=torch.long), train_hugging_face


def first(output: Any) -> torch.Tensor:
    """Return the first tensor of an output."""
    value: torch.Tensor = output if isinstance(output, torch.Tensor) else output[0]
    return value


# Readers ----------------------------------------------------------------------------------------------------------


@reader
def jit_trace(model: nn.Module, inputs: Any) -> Found:
    graph = torch.jit.trace(model, (inputs,)).inlined_graph
    return [node.kind() for node in graph.nodes()], None


@reader
def jit_script(model: nn.Module, inputs: Any) -> Found:
    scripted = torch.jit.script(model)
    return [node.kind() for node in scripted.inlined_graph.nodes()], scripted.code


@reader
def exported(model: nn.Module, inputs: Any) -> Found:
    program = torch.export.export(model, (inputs,), strict=False)
    return [node.name for node in program.graph.nodes], str(program.graph_signature)


@reader
def exported_by_dynamo(model: nn.Module, inputs: Any) -> Found:
    program = torch.export.export(model, (inputs,), strict=True)
    return [node.name for node in program.graph.nodes], None


@reader
def onnx(model: nn.Module, inputs: Any) -> Found:
    buffer = io.BytesIO()
    torch.onnx.export(model, (inputs,), buffer, dynamo=False)
    return len(buffer.getvalue()), None


@reader
def symbolic_trace(model: nn.Module, inputs: Any) -> Found:
    return [node.name for node in torch.fx.symbolic_trace(model).graph.nodes], None


@reader
def made_fx(model: nn.Module, inputs: Any) -> Found:
    from torch.fx.experimental.proxy_tensor import make_fx

    makers = (make_fx(model), make_fx(model, tracing_mode="symbolic", _allow_non_fake_inputs=True))
    return [[node.name for node in maker(inputs).graph.nodes] for maker in makers], None


@reader
def fake(model: nn.Module, inputs: Any) -> Found:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        out = model(inputs)
    return list(first(out).shape), str(first(out))


@reader
def transforms(model: nn.Module, inputs: Any) -> Found:
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def objective(values: Any) -> torch.Tensor:
        out = torch.func.functional_call(model, values, (inputs,))
        return first(out).square().mean()

    gradients, value = torch.func.grad_and_value(objective)(parameters)
    stacked = {name: torch.stack([each, each]) for name, each in parameters.items()}
    many = torch.func.vmap(objective, randomness="different")(stacked)
    kept = [parameter.grad_fn is None and parameter.is_leaf for parameter in model.parameters()]
    shapes = [sorted((name, list(each.shape)) for name, each in gradients.items()), list(many.shape), kept]
    return [shapes, str(value.dtype), str(many.dtype)], value.item().hex()


@reader
def whole_graph_compiled(model: nn.Module, inputs: Any) -> Found:
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    whole = torch.compile(model, backend="eager", fullgraph=True)

    def called(value: Any) -> Any:
        return model(value)

    step = torch.compile(called, backend="eager", fullgraph=True)
    shapes = [type(call(inputs)).__name__ for call in (whole, step) for _ in range(3)]
    return [shapes, dict(counters["graph_break"])], dict(counters["stats"])


@reader
def pickled(model: nn.Module, inputs: Any) -> Found:
    raw = pickle.dumps(model) if ROOT != "lightning" else pickle.dumps(model.net)
    strings = sorted({str(value) for _, value, _ in pickletools.genops(raw) if isinstance(value, str)})
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return [strings, sorted(torch.load(buffer, weights_only=True))], None


@reader
def copied(model: nn.Module, inputs: Any) -> Found:
    """A class that pickles its attributes itself, as Lightning's do, keeps the hook's name: with None, as in Module."""
    twin, shallow = copy.deepcopy(model), copy.copy(model)
    attributes = {name: type(value).__name__ for name, value in vars(twin).items() if value is not None}
    return [attributes, list(first(shallow(inputs)).shape)], None


# Once in a program ------------------------------------------------------------------------------------------------


def stacks() -> Found:
    """Train the model that looks around, and say what it saw: how deep it was, and who was there.

    While a program is observed, what a root returns is looked at once: a frame of ours stands for one of torch's then.
    """
    torch.manual_seed(0)
    logger = logging.getLogger("program")
    logger.propagate = False
    logger.addHandler(Emits())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train_plain(Looking(), lambda: None)
    (FOLDER / "looks_at_its_importer.py").write_text(
        "import inspect, os\n"
        "SEEN = [(os.path.basename(each.filename), each.function) for each in inspect.stack(context=0)]\n"
    )
    sys.path.insert(0, str(FOLDER))
    STACKS["import"] = [importlib.import_module("looks_at_its_importer").SEEN]
    warned = [(os.path.basename(each.filename), each.lineno, str(each.message)) for each in caught]
    depths = {name: [len(stack) for stack in seen] for name, seen in STACKS.items()}
    users = [each for each in warned if each[0] == os.path.basename(__file__)]
    return [depths, STACKS["logged"][:4], users], {name: seen[1:] for name, seen in STACKS.items()}


def scripted_in_place() -> Found:
    """TorchScript finds names by counting the frames above it."""
    import torch.distributed.optim  # it scripts classes when it is imported

    def local_helper(value: torch.Tensor) -> torch.Tensor:
        return value * 3

    @torch.jit.script
    def uses_it(value: torch.Tensor) -> torch.Tensor:
        return local_helper(value)

    @torch.jit.script
    def differentiates(value: torch.Tensor) -> list[torch.Tensor | None]:
        return torch.autograd.grad([value.sum()], [value])

    @torch.library.custom_op("program::thrice", mutates_args=())
    def thrice(value: torch.Tensor) -> torch.Tensor:
        return local_helper(value)

    value = torch.ones(2, requires_grad=True)
    return [
        uses_it(value).tolist(),
        str(differentiates(value)),
        thrice(value.detach()).tolist(),
    ], uses_it.code


def public_things() -> Found:
    """Names that programs look up, compare and inspect."""
    import torch.distributed

    names = (
        "torch.save", "torch.load", "torch.compile", "torch.jit.script", "torch.jit.trace", "torch.jit.save",
        "torch.autograd.backward", "torch.autograd.grad", "torch.Tensor.backward", "torch.Tensor.to",
        "torch.nn.Module.__call__", "torch.nn.Module.eval", "torch.optim.Optimizer.__init__", "torch.optim.SGD",
        "torch.optim.AdamW", "torch.utils.data.DataLoader", "torch.utils.data.DataLoader.__init__",
        "torch.utils.data.DataLoader.__iter__", "torch.distributed.all_reduce", "torch.distributed.barrier",
        "torch.nn.parallel.DistributedDataParallel", "logging.Handler.handle",
    )  # fmt: skip
    told = []
    for name in names:
        module, _, rest = name.partition(".")
        thing = sys.modules[module]
        for part in rest.split("."):
            thing = getattr(thing, part)
        if name == "torch.Tensor.to":
            told.append([name, type(thing).__name__])
            continue
        told.append(
            [name, type(thing).__name__, str(inspect.signature(thing)), thing.__module__, thing.__qualname__]
        )
        told[-1].append(str(inspect.getfullargspec(thing)) if not isinstance(thing, type) else "")
    tables = [
        name in torch.jit._builtins._get_builtin_table()
        for name in (id(torch.autograd.grad), id(torch.zeros))
    ]
    same = [
        nn.Module.__call__ is nn.Module._wrapped_call_impl,
        torch.fx._symbolic_trace._orig_module_call is nn.Module.__call__,
    ]
    return [
        [row for row in told if "Optimizer" not in row[0] and "DataLoader" not in row[0]],
        tables,
        same,
    ], told


def attempt(call: Callable[[], Found]) -> dict[str, Any]:
    """Return what a case found; an error that it has without us too is a finding."""
    try:
        always, observing = call()
    except Exception as error:
        first = str(error).strip().splitlines()[:1]
        return {
            "always": ["error", type(error).__name__, first],
            "observing": None,
            "error": traceback.format_exc(),
        }
    return {"always": always, "observing": observing}


def main() -> None:
    results: dict[str, Any] = {}
    once = {"stacks": stacks, "scripted_in_place": scripted_in_place, "public_things": public_things}
    model, inputs, train = made()

    def read(when: str) -> None:
        for name, function in READERS.items():
            results[f"{name} {when}"] = attempt(lambda function=function: function(model, inputs))  # type: ignore[misc]

    read("before")
    train(model, lambda: read("in training"))
    read("after")
    if ROOT == "plain":
        results |= {name: attempt(case) for name, case in once.items()}
    RESULTS.write_text(re.sub(r"0x[0-9a-f]{9,}", "0x", json.dumps(results)))


if __name__ == "__main__":
    main()
