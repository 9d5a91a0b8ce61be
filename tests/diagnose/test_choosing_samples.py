"""What the training process does before a batch is made is no fault of the data set's, nor of its workers."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation

from .deep_observations import CASES, CHOOSING, ENDING, FETCH, GETTING, SAMPLER, WAITING, with_stacks
from .observations import STEP_S, with_loader, with_phases


def _found(observation: Observation) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(observation).findings}


def test_the_line_of_the_sampler_is_named_with_its_part_of_the_wait() -> None:
    finding = _found(CASES["slow-sampler"])["slow-sampler"]
    assert (finding.path, finding.line) == ("data.py", 21)
    assert finding.cost_s == pytest.approx(0.4 * STEP_S)


def test_only_the_making_of_a_batch_is_the_price_of_making_it_otherwise() -> None:
    """A slow sampler was 2.0x for `sample-by-sample-batches`, of batches that were made in a fiftieth of the step."""
    finding = _found(CASES["slow-sampler"])["loader-in-training-process"]
    assert finding.cost_s == pytest.approx(0.1 * STEP_S)


@pytest.mark.parametrize(
    ("num_workers", "code"), [(1, "too-few-workers"), (8, "loader-slower-than-training")]
)
def test_more_workers_choose_no_sample(num_workers: int, code: str) -> None:
    waits = with_loader(with_phases(data=0.5), num_workers=num_workers)
    samples = (((0, FETCH), "worker", None, 50), ((0, 1), "train", "forward", 50))
    chooses = with_stacks(waits, *samples, ((0, CHOOSING, SAMPLER), "train", "data", 50))
    only_waits = with_stacks(
        waits, *samples, ((0, GETTING, WAITING), "train", "data", 40), ((0, GETTING), "train", "data", 10)
    )
    assert code not in _found(chooses)
    assert (_found(chooses)["slow-sampler"].path, _found(chooses)["slow-sampler"].line) == ("data.py", 21)
    assert _found(only_waits)[code].cost_s == pytest.approx(0.4 * STEP_S), "unpacking is no wait"


def test_starting_a_loader_for_each_step_is_priced_once() -> None:
    found = _found(CASES["loader-restarted-each-step"])
    finding = found["loader-restarted-each-step"]
    assert (finding.path, finding.line) == ("train.py", 43)
    assert finding.cost_s == pytest.approx(0.45 * STEP_S)
    assert found["loader-in-training-process"].cost_s == pytest.approx(0.5 * 5 / 45 * STEP_S)


def test_a_data_set_that_one_step_uses_up_is_started_for_each_step() -> None:
    whole = with_loader(CASES["loader-restarted-each-step"], dataset_len=32)
    assert "loader-restarted-each-step" not in _found(whole)
    assert "loader-restarted-each-step" not in _found(
        msgspec.structs.replace(CASES["loader-restarted-each-step"], epoch_steps=2)
    )


def test_the_end_of_an_epoch_within_the_window_is_no_wait_of_a_step() -> None:
    """A third of the samples were in the workers' end, and too few workers cost a third less."""
    waits = with_loader(with_phases(data=0.5), num_workers=2)
    ends = with_stacks(
        waits, ((0, GETTING, WAITING), "train", "data", 40), ((0, ENDING, WAITING), "train", "data", 20)
    )
    assert _found(ends)["too-few-workers"].cost_s == pytest.approx(0.5 * STEP_S)
