"""cpu_affinity, numa_binding and device_selection: what they bind, seen by the kernel, and when they have no say."""

from __future__ import annotations

import platform
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hotloop.machine.devices.links import pci_address, wiring
from hotloop.machine.devices.nvml import Nvml
from hotloop.machine.host.kernel_list import (
    as_list,
    core_list,
    memory_nodes,
    node_of_pci_device,
    physical_cores,
    usable,
)
from hotloop.model.observation import DeviceMemory, Memory, Observation
from hotloop.model.sites import Sites
from hotloop.model.tuning import PlanStep
from hotloop.optimize.catalogue.system.cpu_affinity import activation
from hotloop.optimize.catalogue.system.cpu_affinity import row as cpu_affinity
from hotloop.optimize.catalogue.system.cpu_affinity.row import CpuAffinity
from hotloop.optimize.catalogue.system.device_selection import row as device_selection
from hotloop.optimize.catalogue.system.device_selection.row import DeviceSelection
from hotloop.optimize.catalogue.system.numa_binding import activation as memory_policy
from hotloop.optimize.catalogue.system.numa_binding import row as numa_binding
from hotloop.optimize.catalogue.system.numa_binding.activation import MemoryPolicy
from hotloop.optimize.catalogue.system.numa_binding.row import NumaBinding
from hotloop.optimize.optimization import DoesNotApply
from hotloop.patch.rewrite_plan import Patch, StepOutcome
from hotloop.source.draft import Editor
from hotloop.source.outcome import Edited, Refused

from .harness import loader, observation
from .test_system import in_a_process

TWO_CORES = pytest.mark.skipif(len(usable()) < 2, reason="one processor cannot be divided")
MIB = 1 << 20


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Eight cores of two hardware threads on two memory nodes, as the kernel shows them."""
    for cpu in range(16):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 8},{cpu % 8 + 8}\n")
    for node, cores in enumerate(("0-3,8-11", "4-7,12-15")):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cores}\n")
    device = tmp_path / "sys/bus/pci/devices/0000:41:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    return tmp_path


def test_the_kernel_s_lists_are_read_and_written() -> None:
    assert core_list("0-3,8") == (0, 1, 2, 3, 8)
    assert as_list((8, 0, 1, 2, 3)) == "0-3,8"
    assert as_list(()) == ""


def test_cores_and_nodes_of_a_machine(machine: Path) -> None:
    assert physical_cores(machine, tuple(range(16)))[:2] == ((0, 8), (1, 9))
    assert physical_cores(machine, (0, 1, 8)) == ((0, 8), (1,)), "of what this process may use"
    assert memory_nodes(machine) == {0: core_list("0-3,8-11"), 1: core_list("4-7,12-15")}


@TWO_CORES
@pytest.mark.slow
def test_workers_are_kept_off_the_training_cores() -> None:
    first, *others = physical_cores()
    after = """
import torch, os
from torch.utils.data import DataLoader

class Where(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index): return sorted(os.sched_getaffinity(0))

keywords = activation.on_loader({"dataset": Where(), "num_workers": 1, "batch_size": None})
seen = [list(map(int, each)) for each in DataLoader(**keywords)]
assert seen == [%s] * 2, seen
assert torch.get_num_threads() <= %d
torch.ones(1 << 20).mul(2)  # threads that are started later
"""
    worker = list(others[-1])
    left = sum(map(len, (first, *others[:-1])))
    on, evidence = in_a_process(
        "cpu_affinity", {"cores": "apart", "worker_cores": 1}, after=after % (worker, left)
    )
    assert on, evidence
    assert evidence.endswith(f"loader workers on {as_list(others[-1])}")


@TWO_CORES
def test_each_rank_has_its_part() -> None:
    ranks = [
        in_a_process("cpu_affinity", {"cores": "ranks"}, {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"})
        for rank in range(2)
    ]
    assert all(on for on, _ in ranks)
    assert ranks[0][1] != ranks[1][1]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_code_for_ranks_binds_as_the_trial_did(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cores = ((0, 8), (1, 9), (4, 12), (5, 13))
    for module in (cpu_affinity, activation):
        monkeypatch.setattr(module, "physical_cores", lambda: cores)
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    outcome = CpuAffinity().rewrite(Editor({}, []), Sites(), {"cores": "ranks"})
    assert isinstance(outcome, Refused)
    bound: list[Any] = []
    system = SimpleNamespace(sched_setaffinity=lambda process, cpus: bound.extend(cpus))
    exec(outcome.code, {"os": system, "local_rank": rank, "local_world_size": 2})
    assert sorted(bound) == list(activation.Placement("ranks", 1).training)
    assert bound == [[0, 8, 1, 9], [4, 12, 5, 13]][rank]


def test_a_launch_line_binds_workers_as_the_trial_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "physical_cores", lambda: ((0, 8), (1, 9)))
    place = activation.Placement("physical", 1)
    assert place.training == place.workers == (0, 1)
    outcome = CpuAffinity().rewrite(Editor({}, []), Sites(), {"cores": "physical"})
    assert isinstance(outcome, Edited)
    assert outcome.prefix == ("taskset", "-c", "0-1")


@TWO_CORES
def test_a_knob_binds_and_lets_go() -> None:
    after = """
import torch
before = os.sched_getaffinity(0)
knob = registry.get("cpu_affinity").knob({"cores": "apart", "worker_cores": 1})
knob.switch(True)
assert os.sched_getaffinity(0) < before
knob.switch(False)
assert os.sched_getaffinity(0) == before and torch.get_num_threads() == threads
"""
    on, evidence = in_a_process(
        "cpu_affinity",
        {"cores": "ranks"},
        before="import os, torch; threads = torch.get_num_threads()",
        after=after,
    )
    assert not on, "one rank of one has every core: nothing was bound"
    assert evidence


@pytest.mark.parametrize(
    ("cores", "program", "kinds"),
    [
        (((0, 4), (1, 5)), {}, ["physical"]),
        (((0,), (1,), (2,), (3,)), {"loaders": (loader(num_workers=3),)}, ["apart"]),
        (((0,), (1,)), {"world_size": 2}, ["ranks"]),
    ],
)
def test_bindings_that_differ_from_none(
    cores: Any, program: dict[str, Any], kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_affinity, "physical_cores", lambda: cores)
    found = CpuAffinity().candidates(observation(**program))
    assert [one.params["cores"] for one in found] == kinds
    assert all(one.params.get("worker_cores", 1) <= len(cores) // 2 for one in found)


@pytest.mark.parametrize(
    ("cores", "program", "why"),
    [
        (((0,), (1,)), {}, "one hardware thread"),
        (((0,),), {"world_size": 2}, "one hardware thread"),
        (((0, 1),), {"environment": {"OMP_PROC_BIND": "close"}}, "OMP_PROC_BIND"),
    ],
)
def test_where_there_is_nothing_to_bind(
    cores: Any, program: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_affinity, "physical_cores", lambda: cores)
    with pytest.raises(DoesNotApply, match=why):
        CpuAffinity().candidates(observation(**program))


@pytest.mark.skipif(platform.machine() not in memory_policy.CALLS, reason="the system call is not known here")
@pytest.mark.skipif(not memory_nodes(), reason="the kernel shows no memory node")
def test_memory_comes_from_the_node() -> None:
    node = next(iter(memory_nodes()))
    on, evidence = in_a_process("numa_binding", {"node": node})
    if not on and "set_mempolicy" in evidence:
        pytest.skip(f"a sandbox forbids it: {evidence}")
    assert on, evidence
    assert evidence.endswith(f"memory of node {node}")
    on, evidence = MemoryPolicy(1000).effect()
    assert not on


def test_a_node_that_is_not_there_is_no_effect() -> None:
    on, evidence = in_a_process("numa_binding", {"node": 1000})
    assert not on
    assert "no memory node 1000" in evidence


def test_the_node_next_to_the_device_is_taken(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa_binding, "memory_nodes", lambda: memory_nodes(machine))
    assert [one.params["node"] for one in NumaBinding().candidates(observation())] == [0, 1]
    assert pci_address(driver([[]]), "GPU-7") is None
    address = pci_address(driver([[]]), "GPU-0")
    assert address is not None
    assert node_of_pci_device(address, machine) == 1


def test_one_node_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numa_binding, "memory_nodes", lambda: {0: (0, 1)})
    with pytest.raises(DoesNotApply, match="one memory node"):
        NumaBinding().candidates(observation())


def driver(links: list[list[int]], foreign: dict[int, int] | None = None, names: str = "") -> Nvml:
    """NVML of devices whose ways to each other are given; 0 is NVLink."""
    num = len(links)

    def way(one: int, other: int) -> int:
        return links[one][other] or 10

    library = SimpleNamespace(
        NVMLError=RuntimeError,
        NVML_P2P_CAPS_INDEX_NVLINK=2,
        nvmlDeviceGetCount=lambda: num,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: (names or "A" * num)[handle],
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=80 * MIB, used=0),
        nvmlDeviceGetP2PStatus=lambda one, other, _: 0 if links[one][other] == 0 else 1,
        nvmlDeviceGetTopologyCommonAncestor=way,
        nvmlDeviceGetMaxPcieLinkGeneration=lambda handle: 4,
        nvmlDeviceGetCurrPcieLinkWidth=lambda handle: 16,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [0] * (foreign or {}).get(handle, 0),
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=b"00000000:41:00.0"),
    )
    return Nvml(library)


def on_gpus(*uuids: str) -> Observation:
    devices = tuple(
        DeviceMemory(index=at, uuid=uuid, name="A", total_bytes=80 * MIB, reserved_bytes=1, beside_bytes=1)
        for at, uuid in enumerate(uuids)
    )
    seen = observation(device="cuda")
    return msgspec.structs.replace(
        seen, memory=Memory(peak_bytes=1, device="cuda", method="none", devices=devices)
    )


PAIRS = [[0, 50, 0, 50], [50, 0, 50, 0], [0, 50, 0, 50], [50, 0, 50, 0]]
"""0 and 2, 1 and 3 are linked; all else crosses the sockets."""


def chosen(nvml: Nvml | None, seen: Observation, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    @contextmanager
    def opened() -> Any:
        yield nvml

    monkeypatch.setattr(device_selection, "open_nvml", opened)
    return [one.params["devices"] for one in DeviceSelection().candidates(seen)]


def test_linked_devices_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wiring(driver(PAIRS)).distances[0, 2] == 0
    assert chosen(driver(PAIRS), on_gpus("GPU-0", "GPU-1"), monkeypatch) == ["0,2"]
    assert chosen(driver(PAIRS, {0: 1}), on_gpus("GPU-0"), monkeypatch) == ["1"], "a free one"


@pytest.mark.parametrize(
    ("nvml", "seen", "why"),
    [
        (driver(PAIRS), on_gpus("GPU-1", "GPU-3"), "no other devices"),
        (driver(PAIRS), on_gpus("GPU-0", "GPU-1", "GPU-2", "GPU-3"), "uses every A"),
        (driver(PAIRS, names="ABAB"), on_gpus("GPU-0", "GPU-2"), "uses every A"),
        (driver(PAIRS), on_gpus("GPU-9"), "does not know the devices"),
        (None, on_gpus("GPU-0"), "management library"),
        (None, observation(), "on cpu"),
        (None, observation(device="cuda", environment={"CUDA_VISIBLE_DEVICES": "1"}), "is given its devices"),
    ],
)
def test_devices_are_left_as_they_are(
    nvml: Nvml | None, seen: Observation, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DoesNotApply, match=why):
        chosen(nvml, seen, monkeypatch)


@pytest.mark.slow
def test_the_number_of_devices_is_what_proves_it() -> None:
    on, evidence = in_a_process("device_selection", {"devices": "2,3"})
    assert not on
    assert evidence == "CUDA_VISIBLE_DEVICES=2,3: torch sees 0 of 2 devices"


@pytest.mark.parametrize("value", ["", "0;1", "a", 3, None])
def test_lists_of_devices_that_are_none(value: Any) -> None:
    with pytest.raises(ValueError, match="devices is"):
        DeviceSelection().validate({"devices": value})


@pytest.mark.parametrize(
    ("command", "started"),
    [
        (("torchrun", "train.py"), ("numactl", "--cpunodebind=1", "--membind=1", "torchrun", "train.py")),
        (("train.py",), ("numactl", "--cpunodebind=1", "--membind=1", "python", "train.py")),
    ],
)
def test_a_binding_is_written_before_the_command(command: tuple[str, ...], started: tuple[str, ...]) -> None:
    outcome = NumaBinding().rewrite(None, Sites(), {"node": 1})  # type: ignore[arg-type]
    step = PlanStep(name="numa_binding", params={"node": 1}, ratio=1.0, low=1.0, high=1.0)
    patch = Patch({}, {}, (StepOutcome(step, outcome),), Sites())
    assert patch.started_as(command) == started
    assert patch.is_launched(("train.py",))
