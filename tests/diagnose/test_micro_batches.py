"""A batch of few samples is small, however many of them an optimizer step accumulates."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.price.facts import micro_batches
from hotloop.diagnose.rules.compute.batch_too_small import rule
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.model.program import ModuleFacts

from .observations import LOADER, STEP, observed, with_program


def _seen(
    *rhythm: str, samples: int, batch_size: int | None = 1, shape: tuple[int, ...] = (1, 4)
) -> Observation:
    step = msgspec.structs.replace(STEP, rhythm=rhythm, samples_per_s=samples / STEP.whole_s)
    root = ModuleFacts(
        cls="Net", num_parameters=10, dtypes=("float32",), layer_counts={"Linear": 30}, input_shapes=(shape,)
    )
    loaders = () if batch_size is None else (msgspec.structs.replace(LOADER, batch_size=batch_size),)
    return with_program(observed(step=step, ranks=()), roots=(root,), loaders=loaders)


def _found(observation: Observation) -> tuple[Finding, ...]:
    return diagnose(observation, rules=[rule]).findings


@pytest.mark.parametrize("batch_size", [1, None])
def test_a_sample_at_a_time_is_a_small_batch_under_accumulation(batch_size: int | None) -> None:
    (finding,) = _found(_seen("16x(data forward backward)", "optimizer", samples=16, batch_size=batch_size))
    assert finding.evidence.startswith("1 samples a backward pass")
    assert "micro-batches" in finding.advice


def test_large_micro_batches_and_large_batches_are_not_small() -> None:
    assert _found(_seen("4x(data forward backward)", "optimizer", samples=128, batch_size=32)) == ()
    assert _found(_seen("data", "forward", "backward", "optimizer", samples=32, batch_size=32)) == ()


def test_closures_of_an_optimizer_and_steps_of_two_networks_are_no_micro_batches() -> None:
    closures = _seen("data", "16x(forward backward)", "optimizer", samples=32, batch_size=32)
    networks = _seen("data", "2x(forward backward optimizer)", samples=2, batch_size=2)
    assert [micro_batches(one) for one in (closures, networks)] == [1, 1]
