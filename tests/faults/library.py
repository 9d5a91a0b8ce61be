"""The fault library: base programs, faults of known size and form, and the finding each should give."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.inject import (
    Tree,
    after_step,
    after_torch,
    before_backward,
    in_getitem,
    set_constant,
    set_keyword,
)

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Base:
    """A program without a fault, and what its names are."""

    name: str
    model: str
    inputs: str
    output: str
    path: Path | None = None

    @property
    def source(self) -> str:
        """Its text."""
        return (self.path or _HERE / "bases" / f"{self.name}.py").read_text(encoding="utf-8")


_PROGRAMS = _HERE.parent / "programs"
BASES = {
    base.name: base
    for base in (
        Base("conv_images", "model", "x", "output"),
        Base("mlp_tabular", "net", "rows", "prediction"),
        Base("transformer_tokens", "self.model", "tokens", "logits"),
        Base("lstm_series", "network", "series", "forecast"),
        Base("autoencoder", "autoencoder", "picture", "rebuilt"),
        Base("mixer_accumulating", "mixer", "batch['patches']", "scores"),
        Base("cnn_epochs", "model", "data", "output", _PROGRAMS / "cnn_epochs.py"),
        Base("siamese", "encoder", "a", "out", _PROGRAMS / "siamese.py"),
        Base("unet3d", "net", "images", "pred", _PROGRAMS / "unet3d.py"),
    )
}


@dataclass(frozen=True)
class Fault:
    """One known fault."""

    name: str
    expected: frozenset[str]
    """The codes that would be right; empty: none exists yet that names it."""
    inject: Callable[[Tree, Base], None]
    needs: str = ""
    """What would have to be measured to name it; empty: what is measured suffices."""


@dataclass(frozen=True)
class Case:
    """A base program with one fault, or none."""

    base: Base
    fault: Fault | None

    @property
    def name(self) -> str:
        """Base and fault in one word."""
        return f"{self.base.name}+{self.fault.name if self.fault else 'clean'}"

    def source(self) -> str:
        """The program's text."""
        tree = ast.parse(self.base.source)
        if self.fault is not None:
            self.fault.inject(tree, self.base)
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


_WORKERS = {"persistent_workers": True}


def _codes(*names: str) -> frozenset[str]:
    return frozenset(names)


def slow_sample(sample_ms: float, *, busy: bool = False, workers: int = 0) -> Fault:
    """A sample takes so long, waiting or computing, with so many workers."""
    busy_code = (
        f"for _ in range({int(sample_ms * 16000)}): pass"  # about 16 million turns a second on one core
    )
    code = busy_code if busy else f"__import__('time').sleep({sample_ms / 1e3})"
    expected = {0: "loader-in-training-process", 1: "too-few-workers"}.get(
        workers, "loader-slower-than-training"
    )

    def inject(tree: Tree, base: Base) -> None:
        in_getitem(tree, code)
        for name, value in ({"num_workers": workers, **_WORKERS} if workers else {}).items():
            set_keyword(tree, "DataLoader", name, value)

    form = "busy" if busy else "sleeps"
    return Fault(f"sample_{form}_{sample_ms:g}ms_{workers}workers", _codes(expected), inject)


def anomaly_mode() -> Fault:
    """Anomaly detection is left on."""
    return Fault(
        "anomaly_mode",
        _codes("anomaly-mode-on"),
        lambda tree, base: after_torch(tree, "import torch\ntorch.autograd.set_detect_anomaly(True)"),
    )


def unfused(batch: int, *, foreach: bool | None = None) -> Fault:
    """The optimizer's fused implementation is not used, and the batch leaves it a share of the step."""

    def inject(tree: Tree, base: Base) -> None:
        for name in ("AdamW", "Adam", "SGD"):
            set_keyword(tree, name, "fused", None)
            if foreach is not None:
                set_keyword(tree, name, "foreach", foreach)
        set_constant(tree, "BATCH", batch)

    return Fault(
        f"unfused_batch{batch}" + ("_foreach" if foreach else ""), _codes("unfused-optimizer"), inject
    )


def tiny_batch(batch: int) -> Fault:
    """So few samples a step."""
    return Fault(
        f"batch_of_{batch}", _codes("batch-too-small"), lambda tree, base: set_constant(tree, "BATCH", batch)
    )


def evaluation(every: int, forwards: int) -> Fault:
    """So many forwards without gradients every so many steps."""
    codes = _codes("evaluation-in-step") if every == 1 else _codes("frequent-evaluation")

    def inject(tree: Tree, base: Base) -> None:
        run = f"with __import__('torch').no_grad():\n    for _ in range({forwards}): {base.model}({base.inputs})"
        indented = run.replace("\n", "\n    ")
        after_step(tree, run if every == 1 else f"if step % {every} == 0:\n    {indented}")

    return Fault(f"evaluates_every_{every}", codes, inject)


def checkpoint(every: int, copies: int) -> Fault:
    """A checkpoint every so many steps, with so many copies of the parameters in it."""

    def inject(tree: Tree, base: Base) -> None:
        save = f"torch.save([{{k: v.clone() for k, v in {base.model}.state_dict().items()}} "
        save += f"for _ in range({copies})], 'last.pt')"
        after_step(tree, save if every == 1 else f"if step % {every} == 0:\n    {save}")

    needs = "the time of torch.save in steps that all save: it is in the step's `other`" if every == 1 else ""
    return Fault(f"saves_every_{every}", _codes("frequent-checkpoints"), inject, needs)


def logging(values: int) -> Fault:
    """So many values of each parameter are written as JSON in each step."""

    def inject(tree: Tree, base: Base) -> None:
        after_step(
            tree,
            "open('log.json', 'a').write(__import__('json').dumps({name: value.detach().flatten()"
            f"[:{values}].tolist() for name, value in {base.model}.named_parameters()}}))",
        )

    return Fault(f"logs_{values}_values", _codes("loop-outside-phases"), inject)


def norms(times: int) -> Fault:
    """The norm of each parameter is taken so often, one by one, in each step."""

    def inject(tree: Tree, base: Base) -> None:
        code = f"norms = [float(p.norm()) for p in {base.model}.parameters() for _ in range({times})]"
        after_step(tree, code)

    return Fault(f"norms_{times}_times", _codes("loop-outside-phases"), inject)


def threads(num: int) -> Fault:
    """So many computing threads."""
    return Fault(
        f"threads_{num}",
        _codes("oversubscribed-threads"),
        lambda tree, base: after_torch(tree, f"import torch\ntorch.set_num_threads({num})"),
    )


def restarts(samples: int, workers: int) -> Fault:
    """Workers are started anew after so few samples."""

    def inject(tree: Tree, base: Base) -> None:
        set_constant(tree, "NUM_SAMPLES", samples)
        set_keyword(tree, "DataLoader", "num_workers", workers)

    return Fault(f"restarts_{workers}_workers_{samples}_samples", _codes("workers-not-persistent"), inject)


def item_storm() -> Fault:
    """Each value of the output is read one by one before the backward pass."""
    return Fault(
        "item_each_value",
        frozenset(),
        lambda tree, base: before_backward(
            tree, f"values = [value.item() for value in {base.output}.detach().flatten()]"
        ),
        "call sites with their time: between forward and backward everything counts as forward",
    )


def loss_loop(times: int) -> Fault:
    """A part of the loss is computed row by row, so often."""
    return Fault(
        f"loss_row_by_row_{times}_times",
        frozenset(),
        lambda tree, base: before_backward(
            tree,
            f"rows = []\nfor _ in range({times}):\n    for row in {base.output}:\n"
            "        rows.append(row.square().mean())",
        ),
        "host samples or call sites: between forward and backward everything counts as forward",
    )


def _case(base: str, fault: Fault | None) -> Case:
    return Case(BASES[base], fault)


CASES: tuple[Case, ...] = (
    *(_case(base, None) for base in BASES),
    _case("conv_images", slow_sample(1.5)),
    _case("transformer_tokens", slow_sample(8.0, busy=True)),
    _case("autoencoder", slow_sample(3.0, workers=1)),
    _case("cnn_epochs", slow_sample(2.0, busy=True)),
    _case("mlp_tabular", slow_sample(2.0, workers=2)),
    _case("lstm_series", slow_sample(0.15)),
    _case("mixer_accumulating", slow_sample(0.5, busy=True)),
    _case("conv_images", anomaly_mode()),
    _case("autoencoder", anomaly_mode()),
    _case("unet3d", anomaly_mode()),
    _case("siamese", slow_sample(1.0, busy=True)),
    _case("lstm_series", anomaly_mode()),
    _case("transformer_tokens", anomaly_mode()),
    _case("mlp_tabular", unfused(32)),
    _case("transformer_tokens", unfused(4)),
    _case("lstm_series", unfused(2, foreach=True)),
    _case("mlp_tabular", tiny_batch(1)),
    _case("lstm_series", tiny_batch(2)),
    _case("mixer_accumulating", tiny_batch(1)),
    _case("autoencoder", evaluation(4, 30)),
    _case("lstm_series", evaluation(1, 4)),
    _case("mlp_tabular", evaluation(10, 20)),
    _case("conv_images", checkpoint(1, 20)),
    _case("mlp_tabular", checkpoint(5, 5)),
    _case("mixer_accumulating", logging(4000)),
    _case("autoencoder", norms(100)),
    _case("mlp_tabular", logging(300)),
    _case("conv_images", restarts(256, 1)),
    _case("cnn_epochs", threads(8)),
    _case("transformer_tokens", threads(16)),
    _case("lstm_series", restarts(128, 2)),
    _case("lstm_series", item_storm()),
    _case("mlp_tabular", loss_loop(2)),
)
