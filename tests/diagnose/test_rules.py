"""Each rule on a program that has its pattern, and none on one that is fine."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.diagnose.check.bottleneck import bottleneck
from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.registry import all_rules
from hotloop.model.finding import Finding, Severity
from hotloop.model.inference import Inference, Latency
from hotloop.model.observation import Coverage, Observation, Phase, PhaseTime, RankObservation, StepTime
from hotloop.model.program import ModuleFacts
from hotloop.probe.record.facts import VARIABLES

from . import deep_observations, device_memory_cases, memory_cases
from .decomposition_cases import decomposing
from .observations import (
    FINE,
    LOADER,
    OPTIMIZER,
    STEP,
    STEP_S,
    observed,
    with_loader,
    with_parts,
    with_phases,
    with_program,
)
from .watched_cases import QUIET_WATCHED, WATCHED

_LINEAR = ModuleFacts(
    cls="Net", num_parameters=10, dtypes=("float32",), layer_counts={"Linear": 4, "ReLU": 4}
)
_ONE_SAMPLE = msgspec.structs.replace(STEP, median_s=0.002, low_s=0.0019, high_s=0.0021, samples_per_s=500.0)
_ACCUMULATING = msgspec.structs.replace(STEP, rhythm=("4x(data forward backward)", "optimizer"))
_TWO_RANKS = tuple(
    RankObservation(
        rank=rank,
        pid=rank,
        role="train",
        step=STEP,
        phases={
            Phase.COMMUNICATION: PhaseTime(wait * 0.1, wait),
            Phase.FORWARD: PhaseTime(0.1 - wait * 0.1, 1 - wait),
        },
    )
    for rank, wait in enumerate((0.5, 0.5, 0.0))
)


def _waits(p50_s: float) -> Latency:
    return Latency(num=50, p50_s=p50_s, low_s=p50_s, high_s=p50_s, p95_s=p50_s, p99_s=p50_s)


CASES: dict[str, Observation] = {
    **deep_observations.CASES,
    "hot-line-before-backward": deep_observations.with_work(
        deep_observations.with_stacks(
            FINE, ((0, 1), "train", "forward", 60), ((0,), "train", "backward", 40)
        ),
        forward_repeated_s=0.02,
        backward_share=0.9,
        backward_repeated_share=0.9,
    ),
    "decomposition-in-step": decomposing("aten::_linalg_svd"),
    "double-precision": with_program(roots=(msgspec.structs.replace(_LINEAR, dtypes=("float64",)),)),
    "input-bound": with_loader(with_phases(data=0.6), iterable=True),
    "loader-in-training-process": with_phases(data=0.6),
    "sample-by-sample-batches": with_phases(data=0.03),
    "too-few-workers": with_loader(with_phases(data=0.6), num_workers=2),
    "loader-slower-than-training": with_loader(with_phases(data=0.6), num_workers=8),
    "too-many-workers": with_loader(num_workers=9),
    "short-epochs": with_parts(epoch_boundary_s=3.0),
    "workers-not-persistent": with_loader(with_parts(epoch_boundary_s=3.0), num_workers=2, num_iterators=5),
    "transfer-bound": with_program(with_phases(transfer=0.2), loaders=(), device="cuda"),
    "unpinned-memory": with_program(with_phases(transfer=0.2), device="cuda"),
    "anomaly-mode-on": with_program(anomaly_mode=True),
    "busy-machine": observed(foreign_share=0.4),
    "debug-environment-set": with_program(environment={"CUDA_LAUNCH_BLOCKING": "1"}, device="cuda"),
    "loop-outside-phases": with_phases(other=0.3),
    "oversubscribed-threads": with_program(num_threads=8, world_size=2),
    "undersubscribed-threads": with_program(num_threads=1),
    "unstable-step": observed(step=msgspec.structs.replace(STEP, p95_s=0.3)),
    "batch-too-small": observed(
        step=_ONE_SAMPLE,
        program=msgspec.structs.replace(
            FINE.program, roots=(_LINEAR,), loaders=(msgspec.structs.replace(LOADER, batch_size=1),)
        ),
        ranks=(),
    ),
    "small-inference-batch": observed(
        inference=Inference(
            requests_per_s=10.0,
            latency=_waits(0.1),
            batch=1,
            by_batch={1: _waits(0.04), 4: _waits(0.05), 8: _waits(0.1)},
        )
    ),
    "full-precision-step": msgspec.structs.replace(
        with_program(roots=(_LINEAR,)), machine={**FINE.machine, "isa": ("amx_bf16",)}
    ),
    "unfused-optimizer": with_program(
        with_phases(optimizer=0.3), optimizers=(msgspec.structs.replace(OPTIMIZER, fused=None),)
    ),
    "page-faults-in-step": observed(
        ranks=(
            RankObservation(
                rank=None, pid=1, role="train", step=STEP, phases=FINE.phases, page_faults=8000.0
            ),
        )
    ),
    "communication-bound": with_program(with_phases(communication=0.3), world_size=2),
    "all-reduce-every-micro-step": msgspec.structs.replace(
        with_program(with_phases(communication=0.3), world_size=2, distributed="ddp", reduced=1.0),
        step=_ACCUMULATING,
    ),
    "data-parallel": with_program(distributed="dp", device="cuda"),
    "straggler-rank": observed(ranks=_TWO_RANKS),
    "compilation-heavy": msgspec.structs.replace(with_parts(compilation_s=20.0), total_steps=90),
    "evaluation-in-step": msgspec.structs.replace(
        with_phases(forward=0.6, backward=0.35),
        evaluated=PhaseTime(0.5 * STEP_S, 0.5),
        step=msgspec.structs.replace(STEP, rhythm=("data", "evaluate", "forward", "backward")),
    ),
    "frequent-checkpoints": with_parts(checkpoint_s=3.0),
    "frequent-evaluation": with_parts(evaluation_s=6.0),
    "slow-start": msgspec.structs.replace(with_parts(setup_s=30.0), total_steps=90),
    **memory_cases.CASES,
    **WATCHED,
    **device_memory_cases.CASES,
}
"""For each code a program that has the pattern."""

QUIET = {
    "pointwise-chains",
    "busy-machine",
    "too-many-workers", "undersubscribed-threads", "unstable-step", "full-precision-step", "compilation-heavy",
    "evaluation-in-step", "slow-start",
    *QUIET_WATCHED, "memory-copied-per-worker", *memory_cases.CASES}  # fmt: skip
"""Codes that are information by their pages, whatever the program."""


def _found(observation: Observation) -> dict[str, Finding]:
    return {finding.code: finding for finding in diagnose(observation).findings}


def test_every_rule_has_a_case() -> None:
    assert {rule.code for rule in all_rules()} == set(CASES)


@pytest.mark.parametrize("code", CASES)
def test_rule_finds_its_pattern(code: str) -> None:
    finding = _found(CASES[code])[code]
    assert any(digit in finding.evidence for digit in "0123456789") or code == "data-parallel"
    assert finding.advice.endswith(".")
    if finding.cost_s is not None:
        assert finding.cost_low_s is not None
        assert finding.cost_high_s is not None
        assert 0 <= finding.cost_low_s <= finding.cost_s <= finding.cost_high_s
    if finding.gain is not None:
        assert 1 <= finding.gain.low <= finding.gain.ratio <= finding.gain.high


@pytest.mark.parametrize("code", sorted(set(CASES) - QUIET))
def test_severity_follows_the_cost(code: str) -> None:
    expected = Severity.INFO if code == "sample-by-sample-batches" else Severity.WARNING
    assert _found(CASES[code])[code].severity in {expected, Severity.ERROR}


@pytest.mark.parametrize("code", sorted(QUIET))
def test_what_is_not_priced_is_information(code: str) -> None:
    assert _found(CASES[code])[code].severity is Severity.INFO


def test_a_program_that_is_fine_gets_no_warning() -> None:
    assert [one.code for one in _found(FINE).values() if one.severity is not Severity.INFO] == []


def test_the_cause_takes_the_place_of_the_symptom() -> None:
    assert "input-bound" not in _found(CASES["loader-in-training-process"])
    assert "short-epochs" not in _found(CASES["workers-not-persistent"])


@pytest.mark.parametrize(
    ("capability", "hip", "optimization"),
    [
        ((9, 0), None, "autocast_bf16"),
        ((7, 5), None, None),
        ((9, 0), "6.4", "autocast_bf16"),
        (None, None, "autocast_bf16"),
    ],
)
def test_float16_is_advised_where_there_are_no_units_for_bfloat16(
    capability: tuple[int, int] | None, hip: str | None, optimization: str | None
) -> None:
    gpu = with_program(CASES["full-precision-step"], device="cuda", capability=capability, hip_version=hip)
    gpu = msgspec.structs.replace(gpu, machine={**gpu.machine, "accelerators": [{"name": "GPU"}]})
    finding = _found(gpu)["full-precision-step"]
    assert finding.optimization == optimization
    assert ("float16 with" in finding.advice) == (optimization is None)
    assert "full-precision-step" not in _found(with_program(gpu, capability=(6, 1), hip_version=None))


@pytest.mark.parametrize("name", ["HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"])
def test_the_variables_of_rocm_make_launches_wait_too(name: str) -> None:
    finding = _found(with_program(environment={name: "3"}, device="cuda"))["debug-environment-set"]
    assert (finding.advice, finding.optimization) == (f"Unset {name}.", None)
    assert "debug-environment-set" not in _found(with_program(environment={name: "0"}, device="cuda"))
    assert name in VARIABLES, "the probe notes it"


def test_a_finding_names_the_line_of_the_loader() -> None:
    finding = _found(CASES["loader-in-training-process"])["loader-in-training-process"]
    assert (finding.path, finding.line, finding.metric) == ("train.py", 12, "phases.data.share")
    assert finding.optimization == "loader_workers"
    assert finding.cost_s == pytest.approx(0.06)


def test_the_gain_is_never_above_amdahls_bound() -> None:
    gain = _found(CASES["input-bound"])["input-bound"].gain
    assert gain is not None
    assert gain.ratio == pytest.approx(1 / (1 - 0.6))


def test_a_cost_that_noise_reaches_is_information() -> None:
    noisy = msgspec.structs.replace(STEP, low_s=0.02, high_s=0.3)
    observation = msgspec.structs.replace(with_phases(other=0.08), step=noisy)
    assert _found(observation)["loop-outside-phases"].severity is Severity.INFO


def test_a_few_long_pauses_are_information() -> None:
    phases = dict(with_phases(other=0.3).phases)
    phases[Phase.OTHER] = PhaseTime(median_s=0.0002, share=0.3)
    assert _found(observed(phases=phases))["loop-outside-phases"].severity is Severity.INFO


def test_what_lies_between_some_steps_without_workers_is_not_the_loader_s() -> None:
    plots = with_parts(irregular_step_s=30.0)
    alone = with_loader(plots, num_workers=0, num_iterators=5)
    beside = with_loader(plots, num_workers=2, num_iterators=5)
    assert "run.parts.irregular_step_s" in [one.metric for one in diagnose(alone).findings]
    assert {"short-epochs", "workers-not-persistent"}.isdisjoint(_found(alone))
    assert "run.parts.irregular_step_s" not in [one.metric for one in diagnose(beside).findings]
    assert "workers-not-persistent" in _found(beside)
    seen = bottleneck(alone)
    assert seen is not None
    assert seen.sentence.startswith("host-bound: ")


def test_evaluation_as_large_as_usual_is_information() -> None:
    assert _found(with_parts(evaluation_s=2.0))["frequent-evaluation"].severity is Severity.INFO


def test_a_policy_that_acts_in_every_step_is_not_evaluated() -> None:
    acting = with_program(CASES["evaluation-in-step"], simulators=("gymnasium",))
    assert "evaluation-in-step" not in _found(acting)


def test_one_process_with_too_many_threads_is_information() -> None:
    assert _found(with_program(num_threads=32))["oversubscribed-threads"].severity is Severity.INFO


def test_a_recurrent_layer_is_dispatched_for_each_time_step() -> None:
    lstm = ModuleFacts(cls="Net", dtypes=("float32",), layer_counts={"LSTM": 1}, input_shapes=((1, 30, 1),))
    program = msgspec.structs.replace(CASES["batch-too-small"].program, roots=(lstm,))
    finding = _found(observed(step=_ONE_SAMPLE, program=program))["batch-too-small"]
    assert finding.cost_s == pytest.approx(30 * 50e-6 + 0.03 * 0.002)


def test_rules_abstain_and_say_what_they_need() -> None:
    hidden = msgspec.structs.replace(with_phases(other=0.9), coverage=(Coverage("forward", "not called"),))
    abstained = {one.code: one.needs for one in diagnose(hidden).abstained}
    assert "a model that is called as a whole" in abstained["loop-outside-phases"]
    assert "a second epoch" in abstained["short-epochs"]
    assert "--full" in abstained["slow-start"]


def test_the_dearest_comes_first_and_warnings_before_information() -> None:
    both = with_loader(with_program(with_phases(data=0.3, optimizer=0.15), anomaly_mode=False), num_workers=0)
    both = with_program(both, optimizers=(msgspec.structs.replace(OPTIMIZER, fused=None),), num_threads=1)
    findings = diagnose(both).findings
    loud = [one.severity is not Severity.INFO for one in findings]
    assert loud == sorted(loud, reverse=True)
    assert [one.code for one in findings][:2] == ["loader-in-training-process", "unfused-optimizer"]


def test_without_a_step_nothing_is_said() -> None:
    diagnosis = diagnose(observed(step=None, phases={}, ranks=()))
    assert diagnosis.bottleneck is None
    assert [one for one in diagnosis.findings if one.severity is not Severity.INFO] == []
    assert "a measured step" in {one.needs for one in diagnosis.abstained}


def test_reductions_but_the_last_are_the_price_of_all() -> None:
    found = _found(CASES["all-reduce-every-micro-step"])
    assert found["all-reduce-every-micro-step"].cost_s == pytest.approx(0.75 * 0.3 * STEP_S)
    assert "communication-bound" not in found


@pytest.mark.parametrize(("step", "reduced"), [(_ACCUMULATING, 0.25), (STEP, 1.0), (_ACCUMULATING, None)])
def test_one_reduction_a_step_is_needed(step: StepTime, reduced: float | None) -> None:
    seen = msgspec.structs.replace(
        with_program(with_phases(communication=0.3), world_size=2, reduced=reduced), step=step
    )
    assert "all-reduce-every-micro-step" not in _found(seen)


def test_processes_that_say_they_are_one_rank_are_not_compared() -> None:
    """A process that inherits RANK=0 is no other rank."""
    twice = tuple(msgspec.structs.replace(rank, rank=0) for rank in _TWO_RANKS)
    assert "straggler-rank" not in _found(observed(ranks=twice))
