"""Arms on a device whose memory has a limit: budgeted before every set, none forgotten, none blamed for the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotloop.launch.process import Run
from hotloop.machine.devices.free_memory import FreeMemory
from hotloop.model.observation import Anchor, DeviceMemory
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, FailureKind
from hotloop.probe.control.control_page import HEADER, PID, ControlPage
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import ArmRecord, PlanSteps, Rounds, SetOrder, SetRecord
from hotloop.tune.trials import arm as arms
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.arm_processes import ArmProcesses
from hotloop.tune.trials.device_memory import DeviceBudget
from hotloop.tune.trials.duet import DuetExecutor
from hotloop.tune.trials.out_of_memory import ran_out_of_memory
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.void_blocks import ContentionWatch
from tests.simulated_device.memory import CONTEXT, GIB, Memory
from tests.tune.settings import setting
from tests.tune.test_void_blocks import _Load

LARGER = Candidate(name="larger")


@dataclass
class _Run:
    pid: int

    def exit_code(self) -> None:
        return None


@dataclass
class _Arm:
    """A process on the device; it takes its memory when it warms up."""

    device: Memory
    run: _Run
    plan: PlanSteps
    steps: int = 0
    interrupted: bool = False
    blocks: int = field(default=0)

    def wait_for_start(self, timeout_s: float) -> None:
        pass

    def end(self) -> None:
        self.device.end(self.run.pid)


class _ArmProcesses(ArmProcesses):
    """The real crew on a simulated device: what it starts are not processes."""

    def __init__(self, setting: Setting, blocks: Blocks, device: Memory, each: int, grown: float) -> None:
        super().__init__(setting, blocks, lambda: math.inf)
        self._device, self._each, self._grown = device, each, grown
        self.order: list[str] = []
        self.events: list[str] = []
        self.most_alive = 0
        self.retries_beside = 0
        """Of the allocator of an arm that is not alone."""
        self.with_noise: list[bool] = []
        self.noise_fails = False

    def start(self, order: SetOrder, at: int) -> Arm:
        plan = order.plans[at]
        arm = cast("Arm", _Arm(self._device, _Run(100 + len(self.order)), plan))
        self.order.append("+".join(step.name for step in plan) or "original")
        self.with_noise.append(at in order.perturbed)
        self.events.append(f"start {self.order[-1]}")
        self.alive.append(arm)
        return arm

    def warm(self, arm: Any, ready_by: float = math.inf) -> None:
        if self.noise_fails and self.with_noise[arm.run.pid - 100]:
            raise ArmFailed(arm, Failure(kind=FailureKind.CRASH, message="it failed"))
        growth = self._grown if arm.plan else 1.0
        self.events.append(f"warm {self.order[arm.run.pid - 100]}")
        try:
            self._device.allocate(round(self._each * growth), arm.run.pid)
        except RuntimeError as error:
            text = f"Traceback\ntorch.OutOfMemoryError: {error}\nE1122 torchrun: failed (exitcode: 1)\n"
            kind = FailureKind.OUT_OF_MEMORY if ran_out_of_memory(1, text) else FailureKind.CRASH
            raise ArmFailed(arm, Failure(kind=kind, message="it failed", log_end=text)) from error
        self.most_alive = max(self.most_alive, len(self.alive))

    def turn(self, arm: Any) -> float:
        arm.blocks += 1
        return 2.0 if not arm.plan else 1.0

    def record(self, arm: Any) -> ArmRecord:
        return ArmRecord(step_s=1.0, num_alloc_retries=self.retries_beside if len(self.alive) > 1 else 0)


class _Executor(DuetExecutor):
    """The real executor with that crew."""

    def __init__(
        self,
        device: Memory,
        each_gib: float,
        *,
        others_gib: float = 0.0,
        grown: float = 1.0,
        num_ranks: int = 1,
    ) -> None:
        self.device, each = device, round(each_gib * GIB)
        if others_gib:
            device.held[7] = round(others_gib * GIB) - CONTEXT
        need = DeviceMemory(
            index=0,
            uuid="GPU-0",
            name="Simulated H100",
            total_bytes=device.total,
            reserved_bytes=each,
            beside_bytes=device.total - device.free + CONTEXT,
        )
        self.said: list[str] = []
        blocks = Blocks(num_steps=4, discard=1, warm_steps=3, max_rounds=None)
        shared = setting(num_ranks=num_ranks, devices=(need,))
        self.crew = _ArmProcesses(shared, blocks, device, each, grown)
        super().__init__(
            shared,
            blocks,
            self.said.append,
            watch=lambda say, num: ContentionWatch(say, num, _Load((), 0.0), lambda _: None),
            device_budget=DeviceBudget(shared.devices, self._driver, lambda _: None),
            crew=self.crew,
        )

    def _driver(self) -> tuple[FreeMemory, ...]:
        return (FreeMemory(uuid="0", total_bytes=self.device.total, free_bytes=self.device.free),)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_SCRATCH", str(tmp_path))


ORDER = SetOrder(plans=((), (LARGER,)), max_rounds=8)


def _both(_: Rounds) -> range:
    return range(2)


def _device(total_gib: float = 80.0) -> Memory:
    return Memory(0, round(total_gib * GIB))


@pytest.fixture(autouse=True)
def no_kernels_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.tune.trials.arm_processes.times_kernels", lambda _: False)


def test_two_that_fit_run_beside_one_another() -> None:
    executor = _Executor(_device(), 30)
    record = executor.run(ORDER, _both)
    assert isinstance(record, SetRecord)
    assert executor.crew.order == ["original", "larger"]
    assert executor.crew.most_alive == 2


def test_two_that_do_not_fit_are_whole_processes_in_abba_order() -> None:
    executor = _Executor(_device(), 48)
    record = executor.run(ORDER, _both)
    assert isinstance(record, SetRecord)
    assert executor.crew.order == ["original", "larger", "larger", "original"]
    assert executor.crew.most_alive == 1
    assert record.rounds == ((2.0, 1.0),) * 8


def test_on_a_device_the_first_step_is_taken_with_nothing_beside_it() -> None:
    """Libraries choose kernels by timing them: beside an arm that computes they would choose others."""
    executor = _Executor(_device(), 10)
    executor.run(ORDER, _both)
    assert executor.crew.events == ["start original", "start larger", "warm original", "warm larger"]


def test_ranks_start_one_arm_after_the_other() -> None:
    """They do not wait before their first forward."""
    executor = _Executor(_device(), 10, num_ranks=2)
    executor.run(ORDER, _both)
    assert executor.crew.events == ["start original", "warm original", "start larger", "warm larger"]


def test_the_context_counts() -> None:
    """Twice 39.8 GiB are 79.6: beside two contexts of half a GiB they do not fit in 80."""
    executor = _Executor(_device(), 39.8)
    executor.run(ORDER, _both)
    assert executor.crew.most_alive == 1
    assert not executor.fits(2)


def test_what_others_hold_is_not_free_and_is_not_ours() -> None:
    """30 GiB are somebody else's: two programs of 23 fit beside them, two of 25 do not."""
    assert _Executor(_device(), 23, others_gib=30).fits(2)
    assert not _Executor(_device(), 25, others_gib=30).fits(2)


@pytest.mark.parametrize("each_gib", [10, 30])
def test_no_frozen_arm_is_left_behind(each_gib: float) -> None:
    executor = _Executor(_device(), each_gib)
    for _ in range(3):
        assert isinstance(executor.run(ORDER, _both), SetRecord)
        assert executor.device.held == {}
    executor.close()
    assert executor.device.held == {}


def test_a_candidate_that_had_no_room_beside_others_has_its_turn_alone() -> None:
    executor = _Executor(_device(), 30, grown=2.0)
    record = executor.run(ORDER, _both)
    assert isinstance(record, SetRecord), "60 GiB fit, alone"
    assert executor.crew.order == ["original", "larger", "original", "larger", "larger", "original"]


def test_an_arm_that_was_slow_for_want_of_room_has_its_turn_alone() -> None:
    """Allocator retries wait for the device: what an arm lost by them is no fault of its plan."""
    executor = _Executor(_device(), 30)
    executor.crew.retries_beside = 2
    assert isinstance(executor.run(ORDER, _both), SetRecord)
    assert executor.crew.order == ["original", "larger", "original", "larger", "larger", "original"]
    assert "allocator retries" in executor.said[-1]
    executor.crew.order.clear()
    executor.run(ORDER, _both)
    assert executor.crew.order == ["original", "larger", "larger", "original"]


@pytest.mark.parametrize(("early", "later", "counted"), [(3, 3, 0), (0, 2, 2)])
def test_retries_of_the_warm_up_do_not_count(
    early: int, later: int, counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries try kernels there that want more memory than they keep."""
    seen = {"num_alloc_retries": 0}
    monkeypatch.setattr(arms, "read_processes", lambda _: {1: {"device_memory": [seen]}})
    run = SimpleNamespace(
        tree=list, scratch=tmp_path, wait=lambda *_, **__: True, freeze=lambda: None, thaw=lambda: None
    )
    page = ControlPage.create(tmp_path / "control")
    page.numbers[HEADER + PID] = 1
    arm = Arm(cast("Run", run), page, Anchor("optimizer", 0, 1), num_ranks=1, memory_limit_bytes=None)
    for seen["num_alloc_retries"] in (early, later):
        arm.advance(2, discard=1, timeout_s=1.0)
    assert arm.num_alloc_retries() == counted
    page.close()


def test_a_candidate_that_has_no_room_alone_is_to_blame() -> None:
    executor = _Executor(_device(), 30, grown=4.0)
    record = executor.run(ORDER, _both)
    assert isinstance(record, SetRecord)
    failure = record.failure(1)
    assert failure is not None
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert executor.device.held == {}


def test_noise_that_failed_is_not_given_to_the_plan_in_its_place() -> None:
    executor = _Executor(_device(), 48)
    executor.crew.noise_fails = True
    record = executor.run(SetOrder(plans=((), (), (LARGER,)), max_rounds=8, perturbed=(1,)), _both)
    assert isinstance(record, SetRecord)
    assert [record.failure(at) is not None for at in range(3)] == [False, True, False]
    assert executor.crew.with_noise == [False, True, False, False, False, False]


def test_without_a_driver_to_ask_the_devices_size_counts() -> None:
    need = DeviceMemory(
        index=0, uuid=None, name="", total_bytes=80 * GIB, reserved_bytes=30 * GIB, beside_bytes=GIB
    )
    budget = DeviceBudget((need,), lambda: (), lambda _: None)
    assert budget.fits(2, 0)
    assert not budget.fits(2, 1)
    assert DeviceBudget((), lambda: ()).fits(9, 9), "on a CPU there is nothing to look at"


def test_what_the_driver_keeps_for_itself_is_nobodys_context() -> None:
    """NVML's total, and what it calls used, hold the driver's reserve; CUDA's total does not."""
    need = DeviceMemory(
        index=0, uuid="0", name="", total_bytes=79 * GIB, reserved_bytes=38 * GIB, beside_bytes=GIB
    )
    driver = (FreeMemory(uuid="0", total_bytes=80 * GIB, free_bytes=79 * GIB),)
    assert not DeviceBudget((need,), lambda: driver, lambda _: None).fits(2, 0)


def test_the_memory_of_an_arm_that_has_just_ended_is_waited_for() -> None:
    device, pauses = _device(), list[float]()
    need = DeviceMemory(
        index=0, uuid="0", name="", total_bytes=80 * GIB, reserved_bytes=38 * GIB, beside_bytes=GIB // 2
    )

    def driver() -> tuple[FreeMemory, ...]:
        return (FreeMemory(uuid="0", total_bytes=device.total, free_bytes=device.free),)

    budget = DeviceBudget((need,), driver, lambda seconds: (pauses.append(seconds), device.end(7))[0])
    device.allocate(38 * GIB, 7)
    assert budget.fits(2, 0)
    assert len(pauses) == 1


AFTER = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

E1122 04:00:00.0 17 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 0
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
"""


@pytest.mark.parametrize(
    "words",
    [
        Memory(0, 80 * GIB).message(2 * GIB, 1),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.",
        "torch.AcceleratorError: CUDA error: out of memory",
        "RuntimeError: CUDA driver error: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "RuntimeError: Triton Error [CUDA]: out of memory",
        "torch.distributed.DistBackendError: NCCL error: unhandled cuda error\nCuda failure 2 'out of memory'",
        "RuntimeError: HIP error: out of memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory",
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "RuntimeError: miopenStatusAllocFailed",
        "RuntimeError: HIP error: hipErrorOutOfMemory",
        "RuntimeError: rocblas_status_memory_error when calling rocblas_create_handle",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "RuntimeError: unable to write to file </torch_12_345_6>: No space left on device (28)",
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit.",
        "MemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB",
    ],
)
def test_out_of_memory_is_known_in_every_librarys_words_wherever_they_stand(words: str) -> None:
    assert ran_out_of_memory(1, words)
    assert ran_out_of_memory(1, f"step 17\n{words}{AFTER}")


@pytest.mark.parametrize(
    "words",
    [
        "ValueError: no luck",
        "RuntimeError: CUDA error: device-side assert triggered",
        "epoch 1: memory 12 GiB, out of 80 GiB",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "RuntimeError: can't start new thread",
        "warning: the job may run out of memory with a larger batch",
    ],
)
def test_other_ends_are_not_out_of_memory(words: str) -> None:
    assert not ran_out_of_memory(1, words + AFTER)
