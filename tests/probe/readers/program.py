"""The program that all readers read, and what it sees of the stack while it trains."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

ROOT, FOLDER = sys.argv[1], Path(sys.argv[3])
Found = tuple[Any, Any]
STACKS: dict[str, list[Any]] = {}


def note_stack(where: str) -> None:
    """Keep who is on the stack, the first four times."""
    seen = STACKS.setdefault(where, [])
    if len(seen) < 4:
        frames = inspect.stack(context=0)[1:]
        own = [each.lineno if each.filename == __file__ else 0 for each in frames]
        names = [(os.path.basename(each.filename), each.function) for each in frames]
        seen.append(list(zip(names, own, strict=True)))


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
