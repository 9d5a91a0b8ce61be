"""The rules that read deep windows: which line they name, and when they are silent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.lines.acting import is_environments
from hotloop.model.deep import Deep, Frame, HostSamples, Sample
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Coverage, Observation

from .deep_observations import (
    CALL,
    CASES,
    FETCH,
    FRAMEWORK,
    HOOK,
    METRICS,
    SCRIPT,
    STEPPING,
    site,
    with_sites,
    with_stacks,
)
from .observations import FINE, OPTIMIZER, STEP_S, with_loader, with_parts, with_phases, with_program


def found(observation: Observation, code: str) -> list[Finding]:
    """Return the findings with a code."""
    return [finding for finding in diagnose(observation).findings if finding.code == code]


def test_each_line_that_waits_is_a_finding_with_its_price() -> None:
    seen = found(
        with_sites(site(30, 0.2), site(30, 0.1, call="bool(tensor)"), site(44, 0.06)), "sync-in-step"
    )
    assert [(finding.path, finding.line) for finding in seen] == [(SCRIPT, 30), (SCRIPT, 44)]
    assert seen[0].cost_s is not None
    assert abs(seen[0].cost_s - 0.03) < 1e-9
    assert ".item() 3 times a step, bool(tensor) 3 times a step" in seen[0].evidence


@pytest.mark.parametrize(("device", "optimization"), [("cpu", None), ("cuda", "deferred_sync")])
def test_values_can_come_later_from_a_device_alone(device: str, optimization: str | None) -> None:
    (finding,) = found(with_sites(site(30, 0.2, device=device)), "sync-in-step")
    assert finding.optimization == optimization


def test_what_costs_nothing_is_not_said() -> None:
    assert found(with_sites(site(30, 0.001)), "sync-in-step") == []


def test_a_copy_that_copied_nothing_and_a_batch_to_a_device_are_no_copies_on_the_host() -> None:
    nothing = site(32, 0.2, kind="copy", call=".to()", bytes_per_step=0.0)
    moved = site(33, 0.2, kind="copy", call=".to()", bytes_per_step=1e6, device="cuda")
    assert found(with_sites(nothing, moved), "copy-in-step") == []


def test_tensors_that_a_loader_makes_are_not_the_step_s() -> None:
    batch = site(9, 0.2, kind="create", loading=True)
    assert found(with_sites(batch), "tensor-creation-in-step") == []


def test_the_innermost_line_that_holds_most_is_named() -> None:
    (finding,) = found(METRICS, "hot-line-outside-phases")
    assert finding.line == 12
    assert finding.severity is Severity.WARNING
    assert found(METRICS, "loop-outside-phases") == [], "the line says it better"


def test_time_that_is_spread_over_lines_has_no_hot_line() -> None:
    spread = with_stacks(
        with_phases(other=0.4),
        ((0, 1), "train", "forward", 60),
        ((0, 2), "train", "other", 10), ((0, 3), "train", "other", 10), ((0, 4), "train", "other", 10),
    )  # fmt: skip
    assert found(spread, "hot-line-outside-phases") == []


def test_a_phase_that_was_not_seen_silences_it() -> None:
    hidden = msgspec.structs.replace(METRICS, coverage=(Coverage("forward", "no module"),))
    assert "hot-line-outside-phases" in {one.code for one in diagnose(hidden).abstained}


def test_without_a_loader_a_line_that_makes_batches_by_hand_is_information_until_it_takes_much() -> None:
    much = msgspec.structs.replace(METRICS, coverage=(Coverage("data", "no DataLoader"),))
    little = msgspec.structs.replace(much, phases=with_phases(other=0.12).phases)
    assert found(much, "hot-line-outside-phases")[0].severity is Severity.WARNING
    assert found(little, "hot-line-outside-phases")[0].severity is Severity.INFO


def test_the_line_of_the_rollouts_is_what_the_program_does() -> None:
    stacks = (
        ((0, 1), "train", "forward", 50),
        ((0, 2), "train", "evaluation", 10),
        ((0, 2), "train", "other", 50),
    )
    acting = with_stacks(with_parts(with_phases(other=0.02), rollout_s=9.0), *stacks)
    evaluating = with_stacks(with_parts(with_phases(other=0.02), evaluation_s=9.0), *stacks)
    assert found(acting, "hot-line-outside-phases") == []
    assert found(evaluating, "hot-line-outside-phases") != []


def test_the_steps_of_an_environment_are_needed_wherever_the_policy_is_called() -> None:
    stacks = (((0, 1), "train", "forward", 50), ((0, 2, 4), "train", "other", 50))
    simulating = with_program(with_phases(other=0.4), simulators=("gymnasium",))
    acting, other = with_stacks(simulating, *stacks), with_stacks(with_phases(other=0.4), *stacks)
    for code in ("hot-line-outside-phases", "loop-outside-phases"):
        assert found(acting, code) == []
    assert found(other, "hot-line-outside-phases") != []


def test_a_line_of_a_program_that_acts_may_come_every_n_steps_if_it_is_no_environments() -> None:
    simulating = with_program(with_phases(other=0.4), simulators=("gymnasium",))
    (finding,) = found(
        with_stacks(simulating, ((0, 1), "train", "forward", 50), ((0, 4), "train", "other", 50)),
        "hot-line-outside-phases",
    )
    assert finding.line == 12


def test_an_environment_without_frames_is_told_by_its_call(tmp_path: Path) -> None:
    path = tmp_path / "act.py"
    path.write_text("for _ in range(9):\n    seen = envs.step(action)\n    score = mean(seen)\n")
    frames = tuple(Frame(str(path), line, "main") for line in (2, 3))
    host = HostSamples(num_steps=1, window_s=1.0, interval_s=1.0, lines=(), frames=frames, samples=())
    told = [is_environments(host, Sample((at,), "train", "other", spent_s=1.0, num=1)) for at in (0, 1)]
    assert told == [True, False]


def test_a_line_that_comes_now_and_then_is_priced_by_the_loop() -> None:
    rare = with_stacks(
        with_parts(with_phases(other=0.02), irregular_step_s=9.0),
        ((0, 1), "train", "forward", 50), ((0, 2), "train", "other", 50),
    )  # fmt: skip
    (finding,) = found(rare, "hot-line-outside-phases")
    assert finding.line == 43
    assert finding.severity is Severity.WARNING
    assert "% of the loop" in finding.evidence


def test_a_framework_s_own_code_between_the_steps_is_information() -> None:
    theirs = with_stacks(
        with_phases(other=0.4), ((0, 1), "train", "forward", 50), ((0, FRAMEWORK), "train", "other", 50)
    )
    mine = with_stacks(
        with_phases(other=0.4), ((0, 1), "train", "forward", 50),
        ((0, FRAMEWORK, 2), "train", "other", 20), ((0, FRAMEWORK, 4), "train", "other", 15),
        ((0, FRAMEWORK, 3), "train", "other", 15),
    )  # fmt: skip
    assert found(theirs, "loop-outside-phases")[0].severity is Severity.INFO
    assert found(mine, "loop-outside-phases")[0].severity is Severity.WARNING


def test_a_line_of_the_model_that_calls_torch_is_no_host_code() -> None:
    seen = with_stacks(
        FINE, ((0, CALL, HOOK, CALL), "train", "forward", 50), ((0, HOOK), "train", "other", 50)
    )
    assert found(seen, "host-code-in-model") == []


def test_what_else_is_under_a_line_that_reads_values_is_not_the_price_of_reading() -> None:
    """A simulator's step with `action.numpy()` among its arguments was said to wait for values 14% of the time."""
    finding = _read_and_sampled(((0, 2, 4), "train", "forward", 40), ((0, 1), "train", "forward", 60))[
        "sync-in-step"
    ]
    assert finding.cost_s == pytest.approx(0.05 * STEP_S)


def test_a_line_has_one_price_of_which_its_reads_are_a_part() -> None:
    found_ = _read_and_sampled(((0, 2, 4), "train", "other", 40), ((0, 1), "train", "forward", 60))
    assert "sync-in-step" not in found_
    whole = found_["hot-line-outside-phases"]
    assert (whole.path, whole.line) == ("train.py", 12)
    assert "of that .item() 2,000 times a step takes 5.00 ms" in whole.evidence


def _read_and_sampled(*samples: tuple[tuple[int, ...], str, str | None, int]) -> dict[str, Finding]:
    sites = with_sites(site(12, 0.05, count_per_step=2000.0))
    sampled = with_stacks(with_phases(other=0.4), *samples)
    assert sites.deep is not None
    assert sampled.deep is not None
    deep = msgspec.structs.replace(sampled.deep, call_sites=sites.deep.call_sites)
    findings = diagnose(msgspec.structs.replace(sampled, deep=deep)).findings
    return {one.code: one for one in findings}


def test_without_workers_the_data_set_s_line_is_in_the_training_thread() -> None:
    seen = with_stacks(
        with_phases(data=0.5), ((0, FETCH, 3), "train", "data", 50), ((0, 1), "train", "forward", 50)
    )
    (finding,) = found(seen, "slow-dataset-line")
    assert (finding.path, finding.line) == ("data.py", 9)


def test_the_loop_that_asks_for_batches_is_no_line_of_the_data_set() -> None:
    seen = with_stacks(
        with_phases(data=0.5), ((0, FETCH), "train", "data", 50), ((0, 1), "train", "forward", 50)
    )
    assert found(seen, "slow-dataset-line") == []


def test_without_deep_windows_they_abstain() -> None:
    needs = {one.code: one.needs for one in diagnose(FINE).abstained}
    assert set(CASES) <= set(needs)
    assert "--no-deep" in needs["sync-in-step"]


def test_a_hook_that_the_optimizer_calls_is_named_and_is_not_the_optimizer_s_time() -> None:
    hooked = with_stacks(
        with_program(with_phases(optimizer=0.5), optimizers=(msgspec.structs.replace(OPTIMIZER, fused=None),)),
        ((0, 1), "train", "forward", 50), ((0, STEPPING, 2, 4), "train", "optimizer", 40),
        ((0, STEPPING), "train", "optimizer", 10),
    )  # fmt: skip
    (finding,) = found(hooked, "hot-line-outside-phases")
    assert finding.line == 12
    assert "40% of the step" in finding.evidence
    (fused,) = found(hooked, "unfused-optimizer")
    assert "takes 10% of the step" in fused.evidence


def test_a_model_s_own_code_is_no_hook() -> None:
    late = with_stacks(FINE, ((0, 1), "train", "forward", 50), ((0, CALL, 2), "train", "backward", 50))
    assert found(late, "hot-line-outside-phases") == []


def test_the_slowest_transform_is_named_with_its_line_and_its_part_of_the_wait() -> None:
    (finding,) = found(CASES["slow-transform"], "slow-transform")
    assert (finding.path, finding.line) == (SCRIPT, 14)
    assert finding.cost_s is not None
    assert abs(finding.cost_s - 0.5 * 0.6 * STEP_S) < 1e-9
    assert "Blur takes 5.00 ms of the 10.0 ms that a sample takes (50%)" in finding.evidence


def test_what_repeats_is_decoding_and_the_transforms_before_chance_comes_in() -> None:
    (finding,) = found(CASES["same-work-each-epoch"], "same-work-each-epoch")
    assert finding.cost_s is not None
    assert abs(finding.cost_s - 0.7 * 0.6 * STEP_S) < 1e-9
    once = msgspec.structs.replace(
        CASES["same-work-each-epoch"], program=with_loader(FINE, num_iterators=1).program
    )
    assert found(once, "same-work-each-epoch") == []


def test_large_reads_and_memory_that_workers_share_are_no_findings() -> None:
    loading = CASES["small-reads"].deep.loading  # type: ignore[union-attr]
    large = msgspec.structs.replace(loading, read_bytes_per_sample=4e6, private_bytes_per_worker=6e7)
    observation = msgspec.structs.replace(CASES["small-reads"], deep=Deep(loading=large))
    assert found(observation, "small-reads") == []
    assert found(observation, "memory-copied-per-worker") == []
