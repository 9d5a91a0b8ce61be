"""Trials on a device with a limit: refused for it with their number, and not blamed on what ran beside them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hotloop.launch.process import Run
from hotloop.model.observation import Anchor, DeviceMemory
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import FailureKind
from hotloop.probe.activation.description import made_from
from hotloop.probe.control.control_page import HEADER, ControlPage
from hotloop.probe.device.memory_cap import DeviceMemoryCap
from hotloop.tune.executor import PlanSteps, SetOrder
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.duet import _for_want_of_room
from hotloop.tune.trials.memory_cap import cap_bytes, cap_orders
from hotloop.tune.trials.out_of_memory import refused_by_limit
from hotloop.tune.trials.setting import Setting
from tests.simulated_device import SimulatedCuda
from tests.simulated_device.memory import GIB
from tests.tune.settings import setting

HALF: PlanSteps = (Candidate(name="autocast_bf16"),)
LARGER: PlanSteps = (Candidate(name="larger_batch", samples=4.0),)
LIMIT = 24 * GIB


def on_a_device(fit_bytes: int | None = LIMIT, *, on_device: bool = True) -> Setting:
    device = DeviceMemory(
        index=0, uuid=None, name="", total_bytes=80 * GIB, reserved_bytes=GIB, beside_bytes=0
    )
    return setting(fit_bytes=fit_bytes, devices=(device,) if on_device else ())


def proof(plan: PlanSteps) -> SetOrder:
    """A set of the plan's proof: its last arm has to stay within the limit."""
    return SetOrder(plans=((), HALF, plan), max_rounds=4, limited=(2,))


def test_a_plan_has_the_limit_in_its_proof_and_nothing_else_has() -> None:
    order = proof((*HALF, *HALF))
    assert [cap_bytes(on_a_device(), order, at) for at in range(3)] == [None, None, LIMIT]
    assert cap_bytes(on_a_device(None), order, 2) is None
    assert cap_bytes(on_a_device(200 * GIB), order, 2) is None
    assert cap_bytes(on_a_device(on_device=False), order, 2) is None
    assert cap_orders(on_a_device(), order, 1) == []


def test_a_larger_batch_leaves_head_room() -> None:
    compared = SetOrder(plans=((), LARGER), max_rounds=4)
    assert cap_bytes(on_a_device(None), compared, 1) == 72 * GIB
    assert cap_bytes(on_a_device(), compared, 1) == 72 * GIB
    assert cap_bytes(on_a_device(), proof(LARGER), 2) == LIMIT


def test_the_limit_acts_where_the_model_is() -> None:
    (order,) = cap_orders(on_a_device(), proof(HALF), 2)
    cap, cuda = made_from(order["make"]), SimulatedCuda(2)
    assert isinstance(cap, DeviceMemoryCap)
    assert not cap.effect()[0]
    cap.cap(cuda, 1)
    assert [memory.allowed for memory in cuda.memories] == [None, LIMIT]
    assert cap.effect() == (True, f"cuda:1 is limited to {LIMIT} bytes")


def died(limited: bool, tmp_path: Path) -> ArmFailed:
    """An arm that asks for more than there is, or than it may have, beside a process that holds half of the device."""
    cuda = SimulatedCuda()
    memory = cuda.memories[0]
    memory.held[7] = 40 * GIB
    if limited:
        DeviceMemoryCap(LIMIT).cap(cuda, 0)
    memory.allocate(20 * GIB)
    with pytest.raises(RuntimeError) as error:
        memory.allocate(10 * GIB if limited else 30 * GIB)
    log = f"Traceback\ntorch.OutOfMemoryError: {error.value}\n"
    path = tmp_path / "page"
    page = ControlPage.create(path, go_until=0)
    run = SimpleNamespace(
        scratch=tmp_path,
        exit_code=lambda: 1,
        log_end=lambda num=0, report=False: log,
        isolation=SimpleNamespace(covered=False, denied=False, network=False),
        wait=lambda *_, **__: False,
        thaw=lambda: None,
    )
    arm = Arm(
        cast("Run", run),
        page,
        Anchor("optimizer", 0, 1),
        num_ranks=1,
        memory_limit_bytes=None,
        plan=HALF,
        device_limit_bytes=LIMIT,
    )
    with pytest.raises(ArmFailed) as failed:
        arm.advance(1, discard=0, timeout_s=1.0)
    assert path.stat().st_size >= HEADER
    page.close()
    return failed.value


def test_a_trial_over_its_limit_is_refused_with_its_number(tmp_path: Path) -> None:
    failure = died(limited=True, tmp_path=tmp_path).failure
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert failure.message == "it needs more of a device than the limit of 24.0 GiB"
    assert "Tried to allocate 10.00 GiB" in failure.log_end
    assert not _for_want_of_room(failure)


def test_a_trial_for_which_the_device_had_no_room_runs_again_alone(tmp_path: Path) -> None:
    failure = died(limited=False, tmp_path=tmp_path).failure
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert _for_want_of_room(failure)


def test_a_device_that_is_full_is_no_limit_even_where_there_is_one() -> None:
    words = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is "
        "free. Process 1 has 3.00 GiB memory in use. 24.00 GiB allowed; Of the allocated memory"
    )
    assert not refused_by_limit(words)
    assert refused_by_limit(words.replace("which 1.00 GiB", "which 2.50 GiB"))
