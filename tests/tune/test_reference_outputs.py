"""Outputs of a program that trains nothing, recorded in one process and held against another's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hotloop.model.learned import Learned
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import ParityEvidence
from hotloop.probe.record.outputs import Outputs
from hotloop.probe.record.perturbation import perturb
from hotloop.stats.parity import perturbation
from hotloop.tune.verdict.reference_losses import ReferenceLosses
from hotloop.tune.verdict.reference_outputs import ReferenceOutputs

FORWARDS = 40
Run = Callable[..., Tensor]
EXACT = Candidate(name="layout")
LOOSE = Candidate(name="bf16", numerics=Numerics.TOLERANCE)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Dropout(0.3), nn.Conv2d(16, 16, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 64, 10),
    )  # fmt: skip
    net[1].running_var.uniform_(0.5, 2.0)
    return net.eval()


def record(folder: Path, run: Run, *, order: int = 1, seed: int = 3) -> bytes:
    """Return what a process writes that answers so many batches."""
    folder.mkdir(parents=True)
    outputs, batches = Outputs(folder), torch.Generator().manual_seed(seed)
    with torch.inference_mode():
        for images in [torch.randn(4, 3, 12, 12, generator=batches) for _ in range(FORWARDS)][::order]:
            given = outputs.given((images,), {})
            outputs.keep(0, given, run(images), continues=False)
    outputs.flush()
    return next(folder.glob("outputs-*.bin")).read_bytes()


@pytest.fixture(scope="module")
def references(model: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> ReferenceLosses:
    folder = tmp_path_factory.mktemp("originals")
    noisy = copy.deepcopy(model)
    perturb(noisy.parameters(), perturbation("bfloat16"), 1)
    return ReferenceLosses(
        originals=(),
        outputs=ReferenceOutputs(
            originals=tuple(record(folder / name, model) for name in "ab"),
            perturbed=(record(folder / "noisy", noisy),),
        ),
    )


def check(references: ReferenceLosses, outputs: bytes, step: Candidate) -> ParityEvidence:
    return references.check(Learned(outputs=outputs), [step])


def half(model: nn.Module) -> Run:
    def run(images: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.as_tensor(model(images)).float()

    return run


def changed(model: nn.Module, change: Callable[[Any], Any]) -> Run:
    other = copy.deepcopy(model)
    change(other)
    return other


HARMLESS: dict[str, tuple[Callable[[nn.Module], Run], Candidate]] = {
    "the same": (lambda model: model, EXACT),
    "another layout": (
        lambda model: lambda x: model(x.contiguous(memory_format=torch.channels_last)),
        EXACT,
    ),
    "sums in another order": (
        lambda model: lambda x: copy.deepcopy(model).double()(x.double()).float(),
        EXACT,
    ),
    "half precision": (half, LOOSE),
}
BREAKERS: dict[str, tuple[Callable[[nn.Module], Run], Candidate]] = {
    "half precision called exact": (half, EXACT),
    "training mode": (lambda model: changed(model, lambda net: net.train()), LOOSE),
    "dropout on": (lambda model: changed(model, lambda net: net[3].train()), LOOSE),
    "a norm left out": (lambda model: changed(model, lambda net: net.__setitem__(1, nn.Identity())), LOOSE),
    "another scale": (lambda model: lambda x: model(x) * 1.05, LOOSE),
    "a stale output": (lambda model: lambda x, seen=[]: (seen.append(model(x)), seen[max(0, len(seen) - 2)])[1], LOOSE),
    "two classes exchanged": (lambda model: lambda x: model(x)[:, [1, 0, *range(2, 10)]], LOOSE),
    "values that are not finite": (lambda model: lambda x: model(x) / (model(x).abs() > 1e-2), LOOSE),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_answers_the_same_passes(
    name: str, model: nn.Module, references: ReferenceLosses, tmp_path: Path
) -> None:
    make, step = HARMLESS[name]
    seen = check(references, record(tmp_path / "run", make(model)), step)
    assert seen.passed, seen.evidence
    assert (seen.compared, seen.num_steps) == ("outputs", FORWARDS)


@pytest.mark.parametrize("name", BREAKERS)
def test_what_answers_otherwise_is_refused(
    name: str, model: nn.Module, references: ReferenceLosses, tmp_path: Path
) -> None:
    make, step = BREAKERS[name]
    seen = check(references, record(tmp_path / "run", make(model)), step)
    assert not seen.passed, seen.evidence
    assert seen.decided


def test_other_inputs_are_refused(model: nn.Module, references: ReferenceLosses, tmp_path: Path) -> None:
    seen = check(references, record(tmp_path / "run", model, order=-1), EXACT)
    assert not seen.passed
    assert seen.method == "inputs"


def test_inputs_that_nobody_seeded_decide_nothing(model: nn.Module, tmp_path: Path) -> None:
    runs = tuple(record(tmp_path / f"{seed}", model, seed=seed) for seed in range(3))
    references = ReferenceLosses(originals=(), outputs=ReferenceOutputs(originals=runs[:2]))
    seen = check(references, runs[2], LOOSE)
    assert not seen.passed
    assert not seen.decided
    assert "seed what makes them" in seen.evidence


def test_a_text_that_went_another_way_is_not_compared_from_there_on(tmp_path: Path) -> None:
    def generate(folder: Path, *, flips: bool) -> bytes:
        folder.mkdir()
        outputs, draw = Outputs(folder), torch.Generator().manual_seed(5)
        for request in range(10):
            for at in range(6):
                token = torch.randint(0, 90, (1, 8 if at == 0 else 1), generator=draw)
                answer = torch.randn(1, 90, generator=draw)
                if flips and request == 4 and at == 5:
                    token, answer = token + 1, -answer
                given = outputs.given((), {"input_ids": token})
                outputs.keep(0, given, {"logits": answer}, continues=at > 0)
        outputs.flush()
        return next(folder.glob("*.bin")).read_bytes()

    same = generate(tmp_path / "a", flips=False)
    references = ReferenceLosses(
        originals=(), outputs=ReferenceOutputs(originals=(same, same), perturbed=(same,))
    )
    seen = check(references, generate(tmp_path / "b", flips=True), LOOSE)
    assert seen.passed, seen.evidence
    assert seen.num_steps == 59


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_outputs_on_a_device_are_fetched_together(model: nn.Module, tmp_path: Path) -> None:
    there = copy.deepcopy(model).cuda()

    def run(images: Tensor) -> Tensor:
        return torch.as_tensor(there(images.cuda()))

    runs = tuple(record(tmp_path / name, run) for name in "ab")
    references = ReferenceLosses(originals=(), outputs=ReferenceOutputs(originals=runs))
    assert check(references, record(tmp_path / "c", run), EXACT).passed
    broken = record(tmp_path / "d", lambda images: run(images) * 1.05)
    assert not check(references, broken, EXACT).passed
